//! Three sample applications: their tables, what they do, and the smallest policy that carries it,
//! as it was found by hand.
//!
//! What they do is told once, in pieces of work whose values have names: `WHERE email = {email}`.
//! A test says what the values are, and whether they stand in the text or are bound.

use ::mysql::Value;
use onionskin_testkit::Kind;

/// An application.
pub struct Application {
    pub tables: &'static [&'static str],
    /// What has to be there before anything else.
    pub rows: &'static [&'static str],
    /// What it does, in an order in which it can be done.
    pub work: &'static [Piece],
    /// What is to be protected, as `--columns` takes it.
    pub columns: &'static str,
    /// What was found by hand to be the smallest policy.
    pub policy: &'static [&'static str],
    /// How many of its statements read a whole table under any policy.
    pub wide: usize,
    /// Tables that get a key by which `migrate` finds their rows.
    pub keys_added: usize,
    /// Statements that are not carried while one of their tables is protected, and the other one
    /// not yet.
    pub between: &'static [&'static str],
}

/// Statements that belong together: a transaction if they begin one, otherwise each is one.
pub struct Piece {
    pub statements: &'static [&'static str],
    /// It is done each so many rounds.
    pub every: u64,
}

const fn piece(statements: &'static [&'static str]) -> Piece {
    Piece {
        statements,
        every: 1,
    }
}

impl Piece {
    const fn every(mut self, rounds: u64) -> Self {
        self.every = rounds;
        self
    }
}

impl Application {
    /// Its tables' names.
    pub fn names(&self) -> Vec<&'static str> {
        let tables = self.tables.iter();
        tables
            .filter_map(|sql| sql.split_whitespace().nth(2))
            .collect()
    }

    /// Each statement once, with values that no report may have in it.
    pub fn statements(&self, kind: Kind) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        let statements = self.work.iter().flat_map(|piece| piece.statements);
        for sql in statements.filter(|sql| !is_control(sql)) {
            let filled = filled(as_sent_to(kind, sql), |name| canary(name).as_sql(true));
            if !all.contains(&filled) {
                all.push(filled);
            }
        }
        all
    }
}

/// Transactions: they are about no table.
pub fn is_control(sql: &str) -> bool {
    let words = ["BEGIN", "COMMIT", "SET ", "SAVEPOINT", "RELEASE"];
    words.iter().any(|word| sql.starts_with(word))
}

/// MySQL has no RETURNING. There Django takes the id out of the answer.
pub fn as_sent_to(kind: Kind, sql: &str) -> &str {
    match (kind, sql.split_once(" RETURNING ")) {
        (Kind::MySql, Some((before, _))) => before,
        _ => sql,
    }
}

/// The text with something in the places of the values.
pub fn filled(sql: &str, mut value: impl FnMut(&str) -> String) -> String {
    let (mut text, mut rest) = (String::new(), sql);
    while let Some((before, behind)) = rest.split_once('{') {
        let (name, behind) = behind.split_once('}').expect("a name ends");
        text.push_str(before);
        text.push_str(&value(name));
        rest = behind;
    }
    text + rest
}

/// Values that a report would be caught with.
fn canary(name: &str) -> Value {
    let number = match name {
        "admin" | "content_type" | "from" | "flag" => Some(1),
        // what is inserted behind the first row
        "auth_user" | "customers" | "orders" => Some(2),
        "id" | "other" => Some(3),
        "to" => Some(100),
        "k" | "k from" | "k later" => Some(5),
        "k to" | "k end" => Some(30),
        _ => None,
    };
    let text = match name {
        "now" | "past" => "2026-02-01 10:00:00.000007",
        "until" => "2030-02-01 10:00:00.000007",
        "born" => "1980-05-06",
        "born from" => "1980-01-01",
        "born to" => "1980-12-31",
        "ordered" => "2026-01-05",
        "ordered from" => "2026-01-01",
        "ordered to" => "2026-02-01",
        "total" => "17.49",
        "email" => "otto@example.org",
        _ => "",
    };
    match (number, text, name.strip_prefix("like ")) {
        (Some(number), ..) => Value::Int(number),
        (.., Some(name)) => Value::from(format!("%canary {name}%")),
        (_, "", _) => Value::from(format!("canary {name}")),
        (_, text, _) => Value::from(text),
    }
}

macro_rules! user {
    () => {
        "`auth_user`.`id`, `auth_user`.`password`, `auth_user`.`last_login`, \
         `auth_user`.`is_superuser`, `auth_user`.`username`, `auth_user`.`first_name`, \
         `auth_user`.`last_name`, `auth_user`.`email`, `auth_user`.`is_staff`, \
         `auth_user`.`is_active`, `auth_user`.`date_joined`"
    };
}

macro_rules! log_entry {
    () => {
        "`django_admin_log`.`id`, `django_admin_log`.`action_time`, \
         `django_admin_log`.`user_id`, `django_admin_log`.`content_type_id`, \
         `django_admin_log`.`object_id`, `django_admin_log`.`object_repr`, \
         `django_admin_log`.`action_flag`, `django_admin_log`.`change_message`"
    };
}

macro_rules! session {
    () => {
        "`django_session`.`session_key`, `django_session`.`session_data`, \
         `django_session`.`expire_date`"
    };
}

const NEW_LOG_ENTRY: &str = "INSERT INTO `django_admin_log` (`action_time`, `user_id`, `content_type_id`, `object_id`, \
     `object_repr`, `action_flag`, `change_message`) VALUES ({now}, {admin}, {content_type}, {auth_user}, {username}, {flag}, \
     {message}) RETURNING `django_admin_log`.`id`";
const USER_BY_ID: &str = concat!(
    "SELECT ",
    user!(),
    " FROM `auth_user` WHERE `auth_user`.`id` = {auth_user} LIMIT 21"
);
const SESSION: &str = concat!(
    "SELECT ",
    session!(),
    " FROM `django_session` WHERE (`django_session`.`expire_date` > {now} \
     AND `django_session`.`session_key` = {session_key}) LIMIT 21"
);
const COUNT_OF_USERS: &str = "SELECT COUNT(*) AS `__count` FROM `auth_user`";
/// Django's transactions.
const BEGIN: &str = "SET AUTOCOMMIT = 0";
const END: &str = "SET AUTOCOMMIT = 1";

/// Django's auth, admin and sessions: tables and statements as Django 5.2 sends them to MariaDB
/// while somebody logs in and out, makes, lists, searches, changes and deletes users, and forgets a
/// password.
pub const ACCOUNTS: Application = Application {
    tables: &[
        "CREATE TABLE django_content_type (id INT AUTO_INCREMENT PRIMARY KEY, app_label VARCHAR(100) NOT NULL, \
         model VARCHAR(100) NOT NULL, UNIQUE KEY of_model (app_label, model))",
        "CREATE TABLE auth_permission (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(255) NOT NULL, \
         content_type_id INT NOT NULL, codename VARCHAR(100) NOT NULL, UNIQUE KEY of_type (content_type_id, codename), \
         CONSTRAINT permission_type FOREIGN KEY (content_type_id) REFERENCES django_content_type (id))",
        "CREATE TABLE auth_group (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(150) NOT NULL UNIQUE)",
        "CREATE TABLE auth_group_permissions (id INT AUTO_INCREMENT PRIMARY KEY, group_id INT NOT NULL, \
         permission_id INT NOT NULL, UNIQUE KEY of_group (group_id, permission_id), \
         CONSTRAINT group_permission FOREIGN KEY (permission_id) REFERENCES auth_permission (id), \
         CONSTRAINT permission_group FOREIGN KEY (group_id) REFERENCES auth_group (id))",
        "CREATE TABLE auth_user (id INT AUTO_INCREMENT PRIMARY KEY, password VARCHAR(128) NOT NULL, \
         last_login DATETIME(6) NULL, is_superuser TINYINT(1) NOT NULL, username VARCHAR(150) NOT NULL UNIQUE, \
         first_name VARCHAR(150) NOT NULL, last_name VARCHAR(150) NOT NULL, email VARCHAR(254) NOT NULL, \
         is_staff TINYINT(1) NOT NULL, is_active TINYINT(1) NOT NULL, date_joined DATETIME(6) NOT NULL)",
        "CREATE TABLE auth_user_groups (id INT AUTO_INCREMENT PRIMARY KEY, user_id INT NOT NULL, group_id INT NOT NULL, \
         UNIQUE KEY of_user (user_id, group_id), \
         CONSTRAINT user_group FOREIGN KEY (group_id) REFERENCES auth_group (id), \
         CONSTRAINT group_user FOREIGN KEY (user_id) REFERENCES auth_user (id))",
        "CREATE TABLE auth_user_user_permissions (id INT AUTO_INCREMENT PRIMARY KEY, user_id INT NOT NULL, \
         permission_id INT NOT NULL, UNIQUE KEY of_user (user_id, permission_id), \
         CONSTRAINT user_permission FOREIGN KEY (permission_id) REFERENCES auth_permission (id), \
         CONSTRAINT permission_user FOREIGN KEY (user_id) REFERENCES auth_user (id))",
        "CREATE TABLE django_admin_log (id INT AUTO_INCREMENT PRIMARY KEY, action_time DATETIME(6) NOT NULL, \
         object_id LONGTEXT NULL, object_repr VARCHAR(200) NOT NULL, action_flag SMALLINT UNSIGNED NOT NULL CHECK (action_flag >= 0), \
         change_message LONGTEXT NOT NULL, content_type_id INT NULL, user_id INT NOT NULL, \
         CONSTRAINT log_type FOREIGN KEY (content_type_id) REFERENCES django_content_type (id), \
         CONSTRAINT log_user FOREIGN KEY (user_id) REFERENCES auth_user (id))",
        "CREATE TABLE django_session (session_key VARCHAR(40) NOT NULL PRIMARY KEY, session_data LONGTEXT NOT NULL, \
         expire_date DATETIME(6) NOT NULL, KEY expires (expire_date))",
    ],
    rows: &[
        "INSERT INTO django_content_type VALUES (1, 'auth', 'user'), (2, 'auth', 'group')",
        "INSERT INTO auth_permission VALUES (1, 'Can add user', 1, 'add_user'), (2, 'Can view user', 1, 'view_user')",
        "INSERT INTO auth_group VALUES (1, 'editors')",
        "INSERT INTO auth_group_permissions VALUES (1, 1, 2)",
        "INSERT INTO auth_user VALUES (1, 'pbkdf2$canary', NULL, 1, 'wilhelmina', 'Wilhelmina', 'Canary', \
         'wilhelmina@example.org', 1, 1, '2026-01-01')",
        "INSERT INTO django_admin_log VALUES (1, '2026-01-01', '1', 'canary object', 1, '', 1, 1)",
        "INSERT INTO django_session VALUES ('canarykey', 'canarydata', '2030-01-01')",
    ],
    work: &[
        // a user is made
        piece(&[
            BEGIN,
            "SAVEPOINT `s139_x1`",
            "SELECT 1 AS `a` FROM `auth_user` WHERE `auth_user`.`username` LIKE {username} LIMIT 1",
            "SELECT 1 AS `a` FROM `auth_user` WHERE `auth_user`.`username` = {username} LIMIT 1",
            "INSERT INTO `auth_user` (`password`, `last_login`, `is_superuser`, `username`, `first_name`, `last_name`, \
             `email`, `is_staff`, `is_active`, `date_joined`) VALUES ({password}, NULL, 0, {username}, '', '', '', 0, 1, \
             {now}) RETURNING `auth_user`.`id`",
            "SELECT `django_content_type`.`id`, `django_content_type`.`app_label`, `django_content_type`.`model` \
             FROM `django_content_type` WHERE (`django_content_type`.`app_label` = 'auth' \
             AND `django_content_type`.`model` = 'user') LIMIT 21",
            NEW_LOG_ENTRY,
            "RELEASE SAVEPOINT `s139_x1`",
            "COMMIT",
            END,
        ]),
        // they are given names and permissions
        piece(&[
            BEGIN,
            USER_BY_ID,
            "SELECT `auth_group`.`id`, `auth_group`.`name` FROM `auth_group` INNER JOIN `auth_user_groups` \
             ON (`auth_group`.`id` = `auth_user_groups`.`group_id`) WHERE `auth_user_groups`.`user_id` = {auth_user}",
            "SELECT 1 AS `a` FROM `auth_user` WHERE (`auth_user`.`username` = {username} \
             AND NOT (`auth_user`.`id` = {auth_user})) LIMIT 1",
            "UPDATE `auth_user` SET `password` = {password}, `last_login` = NULL, `is_superuser` = 0, \
             `username` = {username}, `first_name` = {first_name}, `last_name` = {last_name}, `email` = {email}, \
             `is_staff` = 1, `is_active` = 1, `date_joined` = {now} WHERE `auth_user`.`id` = {auth_user}",
            "INSERT IGNORE INTO `auth_user_user_permissions` (`user_id`, `permission_id`) VALUES ({auth_user}, 1), \
             ({auth_user}, 2)",
            "INSERT IGNORE INTO `auth_user_groups` (`user_id`, `group_id`) VALUES ({auth_user}, 1)",
            NEW_LOG_ENTRY,
            "COMMIT",
            END,
        ]),
        // they log in
        piece(&[
            concat!(
                "SELECT ",
                user!(),
                " FROM `auth_user` WHERE `auth_user`.`username` = {username} LIMIT 21"
            ),
            "SELECT 1 AS `a` FROM `django_session` WHERE `django_session`.`session_key` = {session_key} LIMIT 1",
            "INSERT INTO `django_session` (`session_key`, `session_data`, `expire_date`) VALUES ({session_key}, \
             {session_data}, {until})",
            "UPDATE `auth_user` SET `last_login` = {now} WHERE `auth_user`.`id` = {auth_user}",
        ]),
        piece(&[
            BEGIN,
            "UPDATE `django_session` SET `session_data` = {data_of_user}, `expire_date` = {until} \
             WHERE `django_session`.`session_key` = {session_key}",
            "COMMIT",
            END,
        ]),
        // a page of theirs
        piece(&[
            SESSION,
            USER_BY_ID,
            "SELECT `django_content_type`.`app_label` AS `content_type__app_label`, `auth_permission`.`codename` AS \
             `codename` FROM `auth_permission` INNER JOIN `auth_user_user_permissions` ON (`auth_permission`.`id` = \
             `auth_user_user_permissions`.`permission_id`) INNER JOIN `django_content_type` ON \
             (`auth_permission`.`content_type_id` = `django_content_type`.`id`) \
             WHERE `auth_user_user_permissions`.`user_id` = {auth_user}",
            "SELECT `django_content_type`.`app_label` AS `content_type__app_label`, `auth_permission`.`codename` AS \
             `codename` FROM `auth_permission` INNER JOIN `auth_group_permissions` ON (`auth_permission`.`id` = \
             `auth_group_permissions`.`permission_id`) INNER JOIN `django_content_type` ON \
             (`auth_permission`.`content_type_id` = `django_content_type`.`id`) \
             WHERE `auth_group_permissions`.`group_id` IN (SELECT U0.`id` FROM `auth_group` U0 INNER JOIN \
             `auth_user_groups` U1 ON (U0.`id` = U1.`group_id`) WHERE U1.`user_id` = {auth_user})",
            concat!(
                "SELECT ",
                log_entry!(),
                ", ",
                user!(),
                ", `django_content_type`.`id`, `django_content_type`.`app_label`, `django_content_type`.`model` \
                 FROM `django_admin_log` INNER JOIN `auth_user` ON (`django_admin_log`.`user_id` = `auth_user`.`id`) \
                 LEFT OUTER JOIN `django_content_type` ON (`django_admin_log`.`content_type_id` = \
                 `django_content_type`.`id`) WHERE `django_admin_log`.`user_id` = {auth_user} \
                 ORDER BY `django_admin_log`.`action_time` DESC LIMIT 10"
            ),
        ]),
        // all users, and those that are searched for
        piece(&[
            SESSION,
            "SELECT `auth_group`.`id`, `auth_group`.`name` FROM `auth_group` ORDER BY `auth_group`.`name` ASC",
            COUNT_OF_USERS,
            "SELECT COUNT(*) AS `__count` FROM `auth_user` WHERE (`auth_user`.`username` LIKE {like username} \
             OR `auth_user`.`first_name` LIKE {like username} OR `auth_user`.`last_name` LIKE {like username} \
             OR `auth_user`.`email` LIKE {like username})",
            concat!(
                "SELECT ",
                user!(),
                " FROM `auth_user` WHERE (`auth_user`.`username` LIKE {like username} \
                 OR `auth_user`.`first_name` LIKE {like username} OR `auth_user`.`last_name` LIKE {like username} \
                 OR `auth_user`.`email` LIKE {like username}) ORDER BY `auth_user`.`username` ASC"
            ),
        ]),
        piece(&[
            concat!(
                "SELECT ",
                user!(),
                " FROM `auth_user` ORDER BY `auth_user`.`username` ASC LIMIT 100"
            ),
            concat!(
                "SELECT ",
                user!(),
                " FROM `auth_user` ORDER BY `auth_user`.`id` DESC LIMIT 100"
            ),
        ])
        .every(5),
        // what was done with one, and a password that was forgotten
        piece(&[
            concat!(
                "SELECT ",
                log_entry!(),
                ", ",
                user!(),
                " FROM `django_admin_log` INNER JOIN `auth_user` ON (`django_admin_log`.`user_id` = `auth_user`.`id`) \
                 WHERE (`django_admin_log`.`content_type_id` = 1 AND `django_admin_log`.`user_id` = {auth_user}) \
                 ORDER BY `django_admin_log`.`action_time` ASC"
            ),
            concat!(
                "SELECT ",
                user!(),
                " FROM `auth_user` WHERE (`auth_user`.`email` LIKE {email} AND `auth_user`.`is_active` = 1)"
            ),
        ]),
        // they log out; old sessions are cleared
        piece(&[
            concat!(
                "SELECT ",
                session!(),
                " FROM `django_session` WHERE `django_session`.`session_key` = {session_key} LIMIT 21"
            ),
            "DELETE FROM `django_session` WHERE `django_session`.`session_key` IN ({session_key})",
        ])
        .every(2),
        piece(&[
            BEGIN,
            "DELETE FROM `django_session` WHERE `django_session`.`expire_date` < {past}",
            "COMMIT",
            END,
        ])
        .every(5),
        // they are deleted
        piece(&[
            BEGIN,
            USER_BY_ID,
            concat!(
                "SELECT ",
                log_entry!(),
                ", ",
                user!(),
                " FROM `django_admin_log` INNER JOIN `auth_user` ON (`django_admin_log`.`user_id` = `auth_user`.`id`) \
                 WHERE `django_admin_log`.`user_id` IN ({auth_user}) ORDER BY `django_admin_log`.`action_time` DESC"
            ),
            concat!(
                "SELECT `auth_user_groups`.`id`, `auth_user_groups`.`user_id`, `auth_user_groups`.`group_id`, ",
                user!(),
                " FROM `auth_user_groups` INNER JOIN `auth_user` ON (`auth_user_groups`.`user_id` = `auth_user`.`id`) \
                 WHERE `auth_user_groups`.`user_id` IN ({auth_user})"
            ),
            NEW_LOG_ENTRY,
            "DELETE FROM `django_admin_log` WHERE `django_admin_log`.`user_id` IN ({auth_user})",
            "DELETE FROM `auth_user_groups` WHERE `auth_user_groups`.`user_id` IN ({auth_user})",
            "DELETE FROM `auth_user_user_permissions` WHERE `auth_user_user_permissions`.`user_id` IN ({auth_user})",
            "DELETE FROM `auth_user` WHERE `auth_user`.`id` IN ({auth_user})",
            "COMMIT",
            END,
        ])
        .every(3),
    ],
    columns: "auth_user.password, auth_user.username, auth_user.*_name, auth_user.email, \
              django_admin_log.object_repr, django_session.session_*",
    policy: &[
        "[protect.\"app.auth_user\"]",
        "password = []",
        "username = [\"eq\", \"like\"]",
        // a search in several columns at once reads them all, whatever they have
        "first_name = []",
        "last_name = []",
        "email = []",
        "",
        "[protect.\"app.django_admin_log\"]",
        "object_repr = []",
        "",
        "[protect.\"app.django_session\"]",
        "session_key = [\"eq\"]",
        "session_data = []",
    ],
    // the search, its count, and the list in the order of names
    wide: 3,
    keys_added: 1,
    between: &[],
};

/// sysbench's read-write test, and its ranges over `k`.
pub const BENCHMARK: Application = Application {
    tables: &[
        "CREATE TABLE sbtest1 (id INT AUTO_INCREMENT PRIMARY KEY, k INT NOT NULL DEFAULT 0, \
         c CHAR(120) NOT NULL DEFAULT '', pad CHAR(60) NOT NULL DEFAULT '', KEY k_1 (k))",
    ],
    rows: &[
        "INSERT INTO sbtest1 VALUES (1, 7, 'canary-1', 'canary-2'), (2, 8, 'canary-3', 'canary-4')",
    ],
    work: &[
        piece(&[
            "BEGIN",
            "DELETE FROM sbtest1 WHERE id={id}",
            "INSERT INTO sbtest1 (id, k, c, pad) VALUES ({id}, {k}, {c}, {pad})",
            "COMMIT",
        ]),
        piece(&[
            "BEGIN",
            "SELECT c FROM sbtest1 WHERE id={id}",
            "SELECT c FROM sbtest1 WHERE id={other}",
            "SELECT c FROM sbtest1 WHERE id BETWEEN {from} AND {to}",
            "SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN {from} AND {to}",
            "SELECT c FROM sbtest1 WHERE id BETWEEN {from} AND {to} ORDER BY c",
            "SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN {from} AND {to} ORDER BY c",
            "UPDATE sbtest1 SET k=k+1 WHERE id={id}",
            "UPDATE sbtest1 SET c={new_c} WHERE id={other}",
            "DELETE FROM sbtest1 WHERE id={other}",
            "INSERT INTO sbtest1 (id, k, c, pad) VALUES ({other}, {k}, {c}, {pad})",
            "COMMIT",
        ]),
        piece(&[
            "SELECT COUNT(k) FROM sbtest1 WHERE k BETWEEN {k from} AND {k to} OR k BETWEEN {k later} AND {k end}",
        ]),
    ],
    columns: "sbtest1.*",
    policy: &[
        "[protect.\"app.sbtest1\"]",
        "k = [\"range\"]",
        "c = []",
        "pad = []",
    ],
    wide: 0,
    keys_added: 0,
    between: &[],
};

pub const SHOP: Application = Application {
    tables: &[
        "CREATE TABLE customers (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(80) NOT NULL, \
         email VARCHAR(120) NOT NULL, born DATE, city VARCHAR(40), UNIQUE KEY by_mail (email))",
        "CREATE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY, customer_email VARCHAR(120) NOT NULL, \
         ordered DATE NOT NULL, total DECIMAL(10,2) NOT NULL, note TEXT, KEY by_customer (customer_email), \
         CONSTRAINT of_customer FOREIGN KEY (customer_email) REFERENCES customers (email))",
    ],
    rows: &[
        "INSERT INTO customers VALUES (1, 'Wilhelmina Canary', 'wilhelmina@example.org', '1980-02-03', 'Ulm')",
        "INSERT INTO orders VALUES (1, 'wilhelmina@example.org', '2026-01-05', 17.49, 'ring the canary bell')",
    ],
    work: &[
        // a new customer, with an order
        piece(&[
            "BEGIN",
            "INSERT INTO customers (name, email, born, city) VALUES ({name}, {email}, {born}, {city})",
            "INSERT INTO orders (customer_email, ordered, total, note) VALUES ({email}, {ordered}, {total}, NULL)",
            "COMMIT",
        ]),
        piece(&[
            "SELECT id, name FROM customers WHERE email = {email}",
            "SELECT id, name FROM customers WHERE born BETWEEN {born from} AND {born to}",
            "SELECT id, name FROM customers WHERE name LIKE {like name}",
            "SELECT c.name, c.born FROM customers c WHERE c.city = {city} ORDER BY c.name",
            "SELECT o.id, o.total FROM orders o JOIN customers c ON c.email = o.customer_email WHERE c.id = {customers}",
        ]),
        // the order is changed
        piece(&[
            "BEGIN",
            "UPDATE orders SET note = {note} WHERE id = {orders}",
            "UPDATE customers SET born = {born} WHERE email = {email}",
            "COMMIT",
        ]),
        piece(&[
            "SELECT SUM(total) FROM orders WHERE ordered BETWEEN {ordered from} AND {ordered to}",
            "SELECT id, note FROM orders WHERE customer_email = {email} ORDER BY ordered DESC LIMIT 5",
        ]),
        // the customer goes
        piece(&[
            "BEGIN",
            "DELETE FROM orders WHERE customer_email = {email}",
            "DELETE FROM customers WHERE id = {customers}",
            "COMMIT",
        ])
        .every(2),
    ],
    columns: "customers.name, customers.email, customers.born, orders.total, orders.note",
    policy: &[
        "[protect.\"app.customers\"]",
        "name = [\"like\"]",
        "email = [\"join:customers.email\"]",
        "born = [\"range\"]",
        "",
        "[protect.\"app.orders\"]",
        "customer_email = [\"join:customers.email\"]",
        "total = []",
        "note = []",
    ],
    wide: 0,
    keys_added: 0,
    // A token cannot be compared with a value.
    between: &[
        "SELECT o.id, o.total FROM orders o JOIN customers c ON c.email = o.customer_email WHERE c.id = ?",
    ],
};
