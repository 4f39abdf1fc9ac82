"""Pools of SQLAlchemy, whose connections the server closes while they are idle."""
import sys
import sqlalchemy

SIZE = 5
url = f"mysql+pymysql://root@127.0.0.1:{sys.argv[1]}/app"
pools = [
    sqlalchemy.create_engine(url, pool_size=SIZE, pool_pre_ping=ping) for ping in (True, False)
]
for pool in pools:
    held = [pool.connect() for _ in range(SIZE)]
    for connection in held:
        connection.close()
print("ready", flush=True)
sys.stdin.readline()
for pool in pools:
    for _ in range(2 * SIZE):
        try:
            with pool.connect() as connection:
                rows = connection.execute(sqlalchemy.text("SELECT name FROM t WHERE id = 1"))
                print(rows.scalar())
        except sqlalchemy.exc.DBAPIError as error:
            # without pings the first statement fails, and the pool throws all of its connections away
            code = error.orig.args[0]
            print("lost" if code in (2006, 2013, 4031) else code, error.connection_invalidated)
