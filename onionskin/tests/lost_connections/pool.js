// A pool of mysql2, whose connections the server closes while they are idle.
const mysql = require('mysql2/promise');
const SIZE = 5;

(async () => {
  const pool = mysql.createPool({
    host: '127.0.0.1', port: Number(process.argv[2]), user: 'root', database: 'app', connectionLimit: SIZE,
  });
  const held = await Promise.all([...Array(SIZE)].map(() => pool.getConnection()));
  await Promise.all(held.map((connection) => connection.ping()));
  held.forEach((connection) => connection.release());
  console.log('ready');
  await new Promise((resolve) => process.stdin.once('data', resolve));
  for (let i = 0; i < 2 * SIZE; i++) {
    for (const ask of ['query', 'execute']) {
      try {
        const [rows] = await pool[ask]('SELECT name FROM t WHERE id = ?', [1]);
        console.log(rows[0].name);
      } catch (error) {
        console.log(error.code, error.fatal === true);
      }
    }
  }
  process.exit(0);
})();
