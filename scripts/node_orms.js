// A small library, written once for each of three ORMs: authors, their books, and tags of books.
//
//     node scripts/node_orms.js typeorm|sequelize|knex mysql|mariadb PORT
//
// Every step prints a line: its name, a tab, and what came of it as JSON. scripts/orm_suites.py runs it on a plain server
// and through the proxy, and compares the lines. It is run where the packages are installed.
"use strict";
const path = require("path");
const load = (name) => require(require.resolve(name, { paths: [process.cwd()] }));
const [orm, dialect, port] = process.argv.slice(2);

// What an application reads of an error. The connection's number is another one in each run.
function shown(error) {
  const of = error.parent || error.driverError || error;
  const text = String(of.sqlMessage || of.message).replace(/\(conn(ection)?[:=] ?\d+,[^)]*\) /, "");
  const fields = error.fields && Object.entries(error.fields);
  return { error: error.name, code: of.code, errno: of.errno, text, fields, paths: error.errors && error.errors.map((e) => [e.path, e.value]) };
}

async function step(name, work) {
  let result;
  try {
    result = await work();
  } catch (error) {
    result = shown(error);
  }
  const plain = (key, value) => (typeof value === "bigint" ? String(value) : Buffer.isBuffer(value) ? value.toString("hex") : value);
  console.log(`${name}\t${JSON.stringify(result === undefined ? null : result, plain)}`);
}

const AUTHORS = [
  { name: "Ada", email: "ada@example.com", born: "1815-12-10", rating: "4.50", kind: "writer", notes: { langs: ["en", "fr"] } },
  { name: "Grace", email: "grace@example.com", born: "1906-12-09", rating: "4.75", kind: "editor", notes: null },
  { name: "Zoë", email: "zoe@example.com", born: "1990-01-31", rating: "3.25", kind: "writer", notes: { langs: [] } },
  { name: "O'Hara 😀", email: "ohara@example.com", born: null, rating: null, kind: "writer", notes: {} },
];
const BOOKS = [
  ["Notes on Engines", 1, 120, "1843-09-01 10:00:00"],
  ["Compilers", 2, 310, "1952-05-03 23:59:59"],
  ["Compilers, again", 2, 512, "1960-02-29 00:00:00"],
  ["Ünïcode", 3, 77, "2021-07-07 07:07:07"],
];

async function typeorm() {
  const { DataSource, EntitySchema, Like, Between, In, Not, IsNull, MoreThan } = load("typeorm");
  const entities = (more) => [
    new EntitySchema({
      name: "Author",
      columns: {
        id: { type: "int", primary: true, generated: true },
        name: { type: "varchar", length: 80 },
        email: { type: "varchar", length: 120, unique: true },
        born: { type: "date", nullable: true },
        rating: { type: "decimal", precision: 5, scale: 2, nullable: true },
        kind: { type: "enum", enum: ["writer", "editor"], default: "writer" },
        notes: { type: "json", nullable: true },
        version: { type: "int", version: true },
        ...more,
      },
      relations: { books: { type: "one-to-many", target: "Book", inverseSide: "author" } },
      indices: [{ columns: ["name", "born"], unique: true }],
    }),
    new EntitySchema({
      name: "Book",
      columns: {
        id: { type: "int", primary: true, generated: true },
        title: { type: "varchar", length: 100 },
        pages: { type: "int", default: 1 },
        printed: { type: "datetime", nullable: true },
        text: { type: "text", nullable: true },
        gone: { type: "datetime", deleteDate: true, nullable: true },
      },
      relations: {
        author: { type: "many-to-one", target: "Author", inverseSide: "books", onDelete: "CASCADE", nullable: true },
        tags: { type: "many-to-many", target: "Tag", joinTable: true, cascade: true },
      },
    }),
    new EntitySchema({ name: "Tag", columns: { word: { type: "varchar", length: 40, primary: true } } }),
  ];
  const source = (more) =>
    new DataSource({ type: dialect, host: "127.0.0.1", port: +port, username: "root", password: "", database: "shop", charset: "utf8mb4", timezone: "Z",
      dateStrings: true, entities: entities(more || {}) });
  let db = source();
  await step("connect", async () => { await db.initialize(); });
  const [authors, books, tags] = ["Author", "Book", "Tag"].map((n) => db.getRepository(n));
  await step("synchronize", () => db.synchronize());
  await step("nothing is left to do", async () => (await db.driver.createSchemaBuilder().log()).upQueries.map((q) => q.query));
  await step("save", () => authors.save(AUTHORS.map((a) => ({ ...a }))));
  await step("insert", async () => (await books.insert(BOOKS.map(([title, author, pages, printed]) => ({ title, author: { id: author }, pages, printed })))).identifiers);
  await step("save with relations", () => books.save({ title: "Tagged", tags: [{ word: "new" }, { word: "blue" }], author: { id: 1 }, printed: "2000-01-01 00:00:00" }));
  await step("find", () => authors.find({ order: { id: "ASC" } }));
  await step("find by text", () => authors.findOneBy({ email: "ADA@example.com" }));
  await step("find like", () => books.find({ where: { title: Like("%compil%") }, order: { title: "DESC" } }));
  await step("find in a range", () => authors.find({ where: { born: Between("1900-01-01", "1995-01-01") }, order: { born: "ASC" } }));
  await step("find in a list", () => authors.find({ where: { name: In(["Grace", "Zoë"]) }, order: { name: "ASC" } }));
  await step("find those that are not NULL", () => authors.count({ where: { rating: Not(IsNull()) } }));
  await step("a page", () => books.findAndCount({ order: { pages: "DESC" }, skip: 1, take: 2 }));
  await step("relations", () => authors.find({ relations: { books: { tags: true } }, where: { books: { pages: MoreThan(100) } }, order: { id: "ASC", books: { id: "ASC" } } }));
  await step("groups", () => books.createQueryBuilder("b").select("b.authorId", "author").addSelect("SUM(b.pages)", "pages").addSelect("MAX(b.title)", "title")
    .groupBy("b.authorId").orderBy("b.authorId").getRawMany());
  await step("a subquery", () => authors.createQueryBuilder("a").where((q) => "a.id IN " + q.subQuery().select("b.authorId").from("Book", "b").where("b.title = :t").getQuery())
    .setParameter("t", "compilers").getMany());
  await step("update", async () => (await authors.update({ name: "Grace" }, { rating: "5.00" })).affected);
  await step("increment", async () => (await books.increment({ id: 1 }, "pages", 5)).affected);
  await step("update an entity", async () => {
    const one = await authors.findOneByOrFail({ id: 1 });
    one.notes = { langs: ["de"] };
    return authors.save(one);
  });
  await step("upsert", async () => { await authors.upsert({ name: "Ada L.", email: "ada@example.com", kind: "editor" }, ["email"]); return authors.find({ order: { id: "ASC" } }); });
  await step("a duplicate", () => authors.insert({ name: "Other", email: "Grace@example.com" }));
  await step("a duplicate of two columns", () => authors.insert({ name: "zoë", email: "z@example.com", born: "1990-01-31" }));
  await step("a duplicate of a key", () => tags.insert({ word: "NEW" }));
  await step("a value that is too long", () => tags.insert({ word: "x".repeat(41) }));
  await step("a wrong reference", () => books.insert({ title: "none", author: { id: 77 } }));
  await step("a transaction that is undone", () => db.transaction(async (m) => { await m.insert("Tag", { word: "gone" }); throw new Error("undone"); }));
  await step("what is left", () => tags.find({ order: { word: "ASC" } }));
  await step("a lock", () => db.transaction((m) => m.findOne("Author", { where: { name: "Grace" }, lock: { mode: "pessimistic_write" } })));
  await step("soft delete", async () => { await books.softDelete({ title: "Ünïcode" }); return books.find({ order: { id: "ASC" }, select: { title: true } }); });
  await step("delete with what refers to it", async () => { const { affected } = await authors.delete({ name: "Ada L." }); return [affected, await books.count()]; });
  await step("raw", () => db.query("SELECT COUNT(*) AS n, MIN(name) AS first, MAX(email) AS last FROM author WHERE kind = ?", ["writer"]));
  await db.destroy();
  db = source({ city: { type: "varchar", length: 40, nullable: true } });
  await db.initialize();
  await step("a new column", async () => { await db.synchronize(); return db.getRepository("Author").find({ order: { id: "ASC" } }); });
  await step("drop", () => db.dropDatabase());
  await db.destroy();
}

async function sequelize() {
  const { Sequelize, DataTypes, Op } = load("sequelize");
  const db = new Sequelize("shop", "root", "", { host: "127.0.0.1", port: +port, dialect, logging: false, timezone: "+00:00",
    dialectOptions: dialect === "mysql" ? { dateStrings: true } : {}, pool: { max: 1 } });
  const stamps = { timestamps: false };
  const Author = db.define("author", {
    name: { type: DataTypes.STRING(80), allowNull: false }, email: { type: DataTypes.STRING(120), unique: true }, born: DataTypes.DATEONLY,
    rating: DataTypes.DECIMAL(5, 2), kind: { type: DataTypes.ENUM("writer", "editor"), defaultValue: "writer" }, notes: DataTypes.JSON,
  }, { ...stamps, indexes: [{ unique: true, fields: ["name", "born"] }] });
  const Book = db.define("book", { title: DataTypes.STRING(100), pages: { type: DataTypes.INTEGER, defaultValue: 1 }, printed: DataTypes.DATE, text: DataTypes.TEXT }, { ...stamps, paranoid: false });
  const Tag = db.define("tag", { word: { type: DataTypes.STRING(40), primaryKey: true } }, stamps);
  Author.hasMany(Book); Book.belongsTo(Author);
  Book.belongsToMany(Tag, { through: "book_tag", timestamps: false }); Tag.belongsToMany(Book, { through: "book_tag", timestamps: false });
  await step("connect", () => db.authenticate());
  await step("sync", async () => { await db.sync(); });
  await step("sync again", async () => { await db.sync({ alter: true }); });
  await step("bulkCreate", async () => (await Author.bulkCreate(AUTHORS.map((a) => ({ ...a })))).map((a) => a.name));
  await step("create", async () => { for (const [title, authorId, pages, printed] of BOOKS) await Book.create({ title, authorId, pages, printed: printed + "Z" }); });
  await step("relations of many to many", async () => { const b = await Book.findByPk(1); await b.createTag({ word: "new" }); await b.createTag({ word: "blue" }); return (await b.getTags({ order: ["word"] })).map((t) => t.word); });
  const rows = (found) => found.map((r) => r.get({ plain: true }));
  await step("findAll", async () => rows(await Author.findAll({ order: ["id"] })));
  await step("find by text", async () => rows(await Author.findAll({ where: { email: "ADA@example.com" } })));
  await step("find like", async () => rows(await Book.findAll({ where: { title: { [Op.like]: "%compil%" } }, order: [["title", "DESC"]] })));
  await step("find in a range", async () => rows(await Author.findAll({ where: { born: { [Op.between]: ["1900-01-01", "1995-01-01"] } }, order: ["born"] })));
  await step("find in a list", async () => rows(await Author.findAll({ where: { name: ["Grace", "Zoë"] }, order: ["name"] })));
  await step("a page", async () => { const found = await Book.findAndCountAll({ order: [["pages", "DESC"]], limit: 2, offset: 1 }); return [found.count, rows(found.rows)]; });
  await step("relations", async () => rows(await Author.findAll({ include: [{ model: Book, where: { pages: { [Op.gt]: 100 } } }], order: ["id", [Book, "id", "ASC"]] })));
  await step("groups", async () => rows(await Book.findAll({ attributes: ["authorId", [db.fn("SUM", db.col("pages")), "pages"], [db.fn("MAX", db.col("title")), "title"]], group: ["authorId"], order: ["authorId"] })));
  await step("update", () => Author.update({ rating: 5 }, { where: { name: "Grace" } }));
  await step("increment", async () => { const b = await Book.findByPk(1); await b.increment("pages", { by: 5 }); return (await b.reload()).pages; });
  await step("upsert", async () => { await Author.upsert({ name: "Ada L.", email: "ada@example.com", kind: "editor" }); return rows(await Author.findAll({ order: ["id"] })); });
  await step("findOrCreate", async () => { const [a, made] = await Author.findOrCreate({ where: { email: "new@example.com" }, defaults: { name: "New" } }); return [a.name, made]; });
  await step("a duplicate", () => Author.create({ name: "Other", email: "Grace@example.com" }));
  await step("a duplicate of two columns", () => Author.create({ name: "zoë", email: "z@example.com", born: "1990-01-31" }));
  await step("a duplicate of a key", () => Tag.create({ word: "NEW" }));
  await step("a value that is too long", () => Tag.create({ word: "x".repeat(41) }));
  await step("a wrong reference", () => Book.create({ title: "none", authorId: 77 }));
  await step("a transaction that is undone", () => db.transaction(async (t) => { await Tag.create({ word: "gone" }, { transaction: t }); throw new Error("undone"); }));
  await step("what is left", async () => rows(await Tag.findAll({ order: ["word"] })));
  await step("a lock", () => db.transaction(async (t) => rows(await Author.findAll({ where: { name: "Grace" }, lock: t.LOCK.UPDATE, transaction: t }))));
  await step("delete", async () => [await Author.destroy({ where: { name: "Grace" } }), rows(await Book.findAll({ order: ["id"] }))]);
  await step("describe", () => db.getQueryInterface().describeTable("authors"));
  await step("indexes", async () => (await db.getQueryInterface().showIndex("authors")).map((i) => [i.name, i.unique, i.fields.map((f) => f.attribute)]));
  await step("a new column", async () => { await db.getQueryInterface().addColumn("authors", "city", { type: DataTypes.STRING(40), allowNull: true }); return db.query("SELECT * FROM authors ORDER BY id", { type: Sequelize.QueryTypes.SELECT }); });
  await step("a column less", async () => { await db.getQueryInterface().removeColumn("authors", "city"); });
  await step("drop", async () => { await db.drop(); });
  await db.close();
}

async function knex() {
  const db = load("knex")({ client: "mysql2", connection: { host: "127.0.0.1", port: +port, user: "root", password: "", database: "shop", charset: "utf8mb4", dateStrings: true }, pool: { min: 0, max: 1 } });
  await step("createTable", async () => {
    await db.schema.createTable("author", (t) => { t.increments("id"); t.string("name", 80).notNullable(); t.string("email", 120).unique(); t.date("born"); t.decimal("rating", 5, 2);
      t.enu("kind", ["writer", "editor"]).defaultTo("writer"); t.json("notes"); t.unique(["name", "born"]); });
    await db.schema.createTable("book", (t) => { t.increments("id"); t.string("title", 100); t.integer("author").unsigned().references("author.id").onDelete("CASCADE"); t.integer("pages"); t.dateTime("printed"); t.text("text"); t.index(["title"]); });
    await db.schema.createTable("tag", (t) => { t.string("word", 40).primary(); });
  });
  await step("hasTable", async () => [await db.schema.hasTable("author"), await db.schema.hasColumn("author", "email"), await db.schema.hasTable("none")]);
  await step("columnInfo", async () => Object.entries(await db("author").columnInfo()).sort());
  await step("insert", async () => [await db("author").insert(AUTHORS.map((a) => ({ ...a, notes: JSON.stringify(a.notes) }))), await db("book").insert(BOOKS.map(([title, author, pages, printed]) => ({ title, author, pages, printed })))]);
  await step("select", () => db("author").orderBy("id"));
  await step("where", () => db("author").where({ email: "ADA@example.com" }));
  await step("like", () => db("book").where("title", "like", "%compil%").orderBy("title", "desc"));
  await step("between", () => db("author").whereBetween("born", ["1900-01-01", "1995-01-01"]).orderBy("born"));
  await step("in", () => db("author").whereIn("name", ["Grace", "Zoë"]).orderBy("name"));
  await step("a page", () => db("book").orderBy("pages", "desc").limit(2).offset(1));
  await step("join", () => db("author as a").leftJoin("book as b", "a.id", "b.author").select("a.name", "b.title").orderBy(["a.id", "b.id"]));
  await step("groups", () => db("book").select("author").sum("pages as pages").max("title as title").groupBy("author").orderBy("author"));
  await step("a subquery", () => db("author").whereIn("id", db("book").select("author").where("title", "compilers")));
  await step("first", () => db("author").where("kind", "editor").first("name", "rating"));
  await step("distinct", () => db("author").distinct("kind").orderBy("kind"));
  await step("a union", () => db("author").select("name as n").union(db("book").select("title as n")).orderBy("n"));
  await step("update", () => db("author").where("name", "Grace").update({ rating: "5.00" }));
  await step("increment", () => db("book").where("id", 1).increment("pages", 5));
  await step("onConflict merge", async () => [await db("author").insert({ name: "Ada L.", email: "ada@example.com", kind: "editor" }).onConflict("email").merge(), await db("author").orderBy("id")]);
  await step("onConflict ignore", async () => [await db("tag").insert([{ word: "new" }, { word: "NEW" }]).onConflict("word").ignore(), await db("tag")]);
  await step("a duplicate", () => db("author").insert({ name: "Other", email: "Grace@example.com" }));
  await step("a duplicate of two columns", () => db("author").insert({ name: "zoë", email: "z@example.com", born: "1990-01-31" }));
  await step("a duplicate of a key", () => db("tag").insert({ word: "NEW" }));
  await step("a duplicate by an update", () => db("author").where("id", 2).update({ email: "ZOE@example.com" }));
  await step("a value that is too long", () => db("tag").insert({ word: "x".repeat(41) }));
  await step("a wrong reference", () => db("book").insert({ title: "none", author: 77 }));
  await step("a transaction that is undone", () => db.transaction(async (t) => { await t("tag").insert({ word: "gone" }); throw new Error("undone"); }));
  await step("what is left", () => db("tag").orderBy("word"));
  await step("a lock", () => db.transaction((t) => t("author").where("name", "Grace").forUpdate()));
  await step("alterTable", async () => { await db.schema.alterTable("author", (t) => { t.string("city", 40); t.renameColumn("rating", "score"); }); return db("author").orderBy("id"); });
  await step("delete", async () => [await db("author").where("name", "Grace").del(), await db("book").count("* as n")]);
  await step("truncate", () => db("tag").truncate());
  await step("drop", async () => { for (const t of ["tag", "book", "author"]) await db.schema.dropTable(t); });
  await db.destroy();
}

({ typeorm, sequelize, knex })[orm]().catch((error) => {
  console.log(`${path.basename(__filename)}\t${JSON.stringify(shown(error))}`);
  process.exit(1);
});
