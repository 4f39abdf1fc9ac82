//! A small shop in plain tables: persons who do not exist, the same ones each time.

use mysql::{Conn, prelude::Queryable};

/// The database of the application.
pub const SHOP: &str = "shop";
/// The same rows, which stay plain: what the application costs without protection.
pub const TWIN: &str = "shop_plain";
/// Of whom it has how many.
pub const CUSTOMERS: u64 = 2_000;
const CARDS: u64 = 1_600;
pub const ORDERS: u64 = 4_000;
const MESSAGES: u64 = 1_400;
/// Rows in one INSERT.
const AT_ONCE: usize = 200;

/// Tables in the order in which they are made.
pub const TABLES: &[(&str, &str)] = &[
    (
        "customers",
        "id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, given_name VARCHAR(60) NOT NULL, \
         surname VARCHAR(60) NOT NULL, email VARCHAR(120) NOT NULL, phone VARCHAR(30) NOT NULL, \
         born DATE NOT NULL, street VARCHAR(100) NOT NULL, postcode VARCHAR(10) NOT NULL, \
         city VARCHAR(60) NOT NULL, joined DATE NOT NULL, UNIQUE KEY by_email (email)",
    ),
    (
        "cards",
        "id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, customer INT NOT NULL, \
         card_number VARCHAR(19) NOT NULL, expires CHAR(5) NOT NULL, KEY by_customer (customer), \
         CONSTRAINT card_of FOREIGN KEY (customer) REFERENCES customers (id)",
    ),
    (
        "orders",
        "id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, customer INT NOT NULL, ordered DATE NOT NULL, \
         amount DECIMAL(10,2) NOT NULL, state VARCHAR(10) NOT NULL, note TEXT, \
         KEY by_customer (customer), KEY by_day (ordered), \
         CONSTRAINT order_of FOREIGN KEY (customer) REFERENCES customers (id)",
    ),
    (
        "messages",
        "id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, customer INT NOT NULL, sent DATETIME NOT NULL, \
         body TEXT NOT NULL, KEY by_customer (customer), \
         CONSTRAINT message_of FOREIGN KEY (customer) REFERENCES customers (id)",
    ),
];

/// Texts that are looked for in the server's files, and the columns in which they stand: among the
/// rows from the beginning.
pub const PLANTED: &[(&str, &str)] = &[
    ("customers.email", "wilhelmina.quellwasser@example.org"),
    (
        "orders.note",
        "leave it with the blue heron behind the third door",
    ),
    (
        "messages.body",
        "my refund was sent to the lighthouse keeper instead",
    ),
];
/// The same for what is written once the tables are protected.
pub const PLANTED_LATER: &[(&str, &str)] = &[
    ("customers.email", "ottokar.spaetzuender@example.org"),
    (
        "orders.note",
        "the late heron asks for gift wrap with comets",
    ),
    (
        "messages.body",
        "nobody has told the lighthouse keeper of the comets",
    ),
];
/// Whose rows the planted texts are in.
pub const PLANTED_CUSTOMER: u64 = CUSTOMERS;

const GIVEN: &[&str] = &[
    "Anna", "Ben", "Clara", "David", "Elena", "Felix", "Greta", "Hugo", "Ines", "Jonas", "Karin",
    "Lukas", "Maria", "Nora", "Oskar", "Paula", "Robert", "Sofia", "Thomas", "Ursula", "Victor",
    "Wanda", "Yusuf", "Zoe",
];
/// The first ones are the most frequent.
const SURNAMES: &[&str] = &[
    "Schmidt",
    "Meyer",
    "Novak",
    "Garcia",
    "Rossi",
    "Martin",
    "Smith",
    "Kowalski",
    "Jensen",
    "Silva",
    "Weber",
    "Fischer",
    "Wagner",
    "Becker",
    "Hoffmann",
    "Keller",
    "Dubois",
    "Moreau",
    "Laurent",
    "Bianchi",
    "Romano",
    "Lopez",
    "Sanchez",
    "Fernandez",
    "Andersson",
    "Nilsson",
    "Hansen",
    "Larsen",
    "Virtanen",
    "Horvath",
    "Popescu",
    "Ivanova",
    "Yilmaz",
    "Kaya",
    "Taylor",
    "Brown",
    "Wilson",
    "Evans",
    "Walker",
    "Wright",
];
const STREETS: &[&str] = &[
    "Garden Street",
    "Station Road",
    "Church Lane",
    "Mill Street",
    "Market Street",
    "Lake Road",
    "School Street",
    "Castle Road",
];
const CITIES: &[&str] = &[
    "Ulm", "Graz", "Basel", "Lyon", "Porto", "Turin", "Gdansk", "Malmo", "Ghent", "Brno",
];
const NOTES: &[&str] = &[
    "please ring at the neighbours",
    "leave it in the garage, the key is under the mat",
    "a present, no invoice in the parcel",
    "deliver in the evening only",
    "no signature, I am hard of hearing",
    "for a birthday, no sender please",
];
const MORE: &[&str] = &[
    "gate code",
    "flat",
    "call me at extension",
    "bell number",
    "staircase",
    "ask for locker",
];
const BODIES: &[&str] = &[
    "the parcel was damaged, I would like a refund of the whole sum",
    "my doctor says I must not lift it, can you deliver to the third floor",
    "when does the next delivery come, I am away from Monday on",
    "thank you, the refund has arrived on my account",
    "please change my address, I have moved in with my daughter",
];
pub const STATES: &[&str] = &["open", "paid", "sent", "returned"];

/// Numbers that look random and are the same each time: splitmix64.
struct Numbers(u64);

impl Numbers {
    /// Of one row of a table: no row depends on the ones before it.
    fn of(table: u64, row: u64) -> Self {
        Self(table.wrapping_mul(0x51_7c_c1_b7_27_22_0a_95) ^ row)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len() as u64) as usize]
    }

    /// The first ones more often, as surnames are.
    fn skewed<'a>(&mut self, of: &[&'a str]) -> &'a str {
        let limit = of.len() as u64;
        let at = self.below(limit).min(self.below(limit));
        of[at.min(self.below(limit)) as usize]
    }

    fn day(&mut self, first: u64, years: u64) -> String {
        let (year, month, day) = (self.below(years), self.below(12), self.below(28));
        format!("{}-{:02}-{:02}", first + year, month + 1, day + 1)
    }
}

/// A customer's surname.
pub fn surname(id: u64) -> &'static str {
    let mut numbers = Numbers::of(1, id);
    numbers.one(GIVEN);
    numbers.skewed(SURNAMES)
}

/// A customer's e-mail address.
pub fn email(id: u64) -> String {
    if id == PLANTED_CUSTOMER {
        return PLANTED[0].1.into();
    }
    let mut numbers = Numbers::of(1, id);
    let given = numbers.one(GIVEN).to_lowercase();
    let surname = numbers.skewed(SURNAMES).to_lowercase();
    format!("{given}.{surname}{id}@example.com")
}

/// A customer's telephone number.
pub fn phone(id: u64) -> String {
    let mut numbers = Numbers::of(7, id);
    let prefix = 150 + numbers.below(30);
    format!("+49 {prefix} {:07}", numbers.below(10_000_000))
}

fn customer(id: u64) -> String {
    let mut numbers = Numbers::of(1, id);
    let (given, surname) = (numbers.one(GIVEN), numbers.skewed(SURNAMES));
    let (born, joined) = (numbers.day(1940, 65), numbers.day(2019, 7));
    let street = format!("{} {}", numbers.below(140) + 1, numbers.one(STREETS));
    let postcode = 10_000 + numbers.below(89_000);
    let city = numbers.skewed(CITIES);
    format!(
        "({id}, '{given}', '{surname}', '{}', '{}', '{born}', '{street}', '{postcode}', '{city}', '{joined}')",
        email(id),
        phone(id)
    )
}

fn card(id: u64) -> String {
    let mut numbers = Numbers::of(2, id);
    let customer = numbers.below(CUSTOMERS) + 1;
    let mut number = String::from("4");
    for _ in 0..14 {
        number += &numbers.below(10).to_string();
    }
    number += &luhn(&number).to_string();
    let expires = format!("{:02}/{}", numbers.below(12) + 1, 27 + numbers.below(4));
    format!("({id}, {customer}, '{number}', '{expires}')")
}

/// The check digit of a card number.
fn luhn(digits: &str) -> u32 {
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(at, digit)| {
            let digit = u32::from(digit - b'0');
            match at % 2 == 0 {
                true if digit > 4 => digit * 2 - 9,
                true => digit * 2,
                false => digit,
            }
        })
        .sum();
    (10 - sum % 10) % 10
}

fn order(id: u64) -> String {
    let mut numbers = Numbers::of(3, id);
    let customer = numbers.below(CUSTOMERS) + 1;
    let (day, amount) = (numbers.day(2024, 2), numbers.below(40_000) + 300);
    let state = numbers.one(STATES);
    let note = match numbers.below(3) {
        _ if id == ORDERS => format!("'{}'", PLANTED[1].1),
        0 => {
            let (note, more) = (numbers.one(NOTES), numbers.one(MORE));
            format!("'{note}, {more} {}'", numbers.below(10_000))
        }
        _ => "NULL".into(),
    };
    let (whole, cents) = (amount / 100, amount % 100);
    format!("({id}, {customer}, '{day}', {whole}.{cents:02}, '{state}', {note})")
}

fn message(id: u64) -> String {
    let mut numbers = Numbers::of(4, id);
    let customer = numbers.below(CUSTOMERS) + 1;
    let day = numbers.day(2024, 2);
    let body = match id {
        MESSAGES => PLANTED[2].1.to_owned(),
        _ => {
            let (first, second) = (numbers.one(BODIES), numbers.one(BODIES));
            format!("{first}; {second}, see order {}", numbers.below(ORDERS) + 1)
        }
    };
    format!("({id}, {customer}, '{day} 10:00:00', '{body}')")
}

/// How many rows a table has.
pub fn rows(table: &str) -> u64 {
    match table {
        "customers" => CUSTOMERS,
        "cards" => CARDS,
        "orders" => ORDERS,
        _ => MESSAGES,
    }
}

/// Makes the tables in a database of that name, with all rows.
pub fn make(conn: &mut Conn, database: &str) -> mysql::Result<()> {
    conn.query_drop(format!("CREATE DATABASE {database} CHARACTER SET utf8mb4"))?;
    conn.query_drop(format!("USE {database}"))?;
    for (table, definition) in TABLES {
        conn.query_drop(format!("CREATE TABLE {table} ({definition})"))?;
        let row = match *table {
            "customers" => customer,
            "cards" => card,
            "orders" => order,
            _ => message,
        };
        let all: Vec<String> = (1..=rows(table)).map(row).collect();
        for some in all.chunks(AT_ONCE) {
            let values = some.join(", ");
            conn.query_drop(format!("INSERT INTO {table} VALUES {values}"))?;
        }
    }
    // what is said of tables and their rows is an estimate until then
    for (table, _) in TABLES {
        conn.query_drop(format!("ANALYZE TABLE {table}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_the_same_each_time_and_need_no_escapes() {
        for id in [1, 2, 77, CUSTOMERS] {
            assert_eq!(customer(id), customer(id));
            assert!(customer(id).contains(&email(id)) && customer(id).contains(surname(id)));
        }
        assert_ne!(customer(1), customer(2));
        let texts = [
            GIVEN, SURNAMES, STREETS, CITIES, NOTES, MORE, BODIES, STATES,
        ];
        let planted = PLANTED.iter().chain(PLANTED_LATER);
        let planted = planted.map(|(_, text)| *text);
        for text in texts.into_iter().flatten().copied().chain(planted) {
            assert!(!text.contains(['\'', '\\']), "{text}");
        }
        let all: Vec<String> = (1..=CUSTOMERS).map(email).collect();
        let different: std::collections::BTreeSet<&String> = all.iter().collect();
        assert_eq!(different.len(), all.len(), "e-mail addresses are unique");
        for (at, (_, text)) in PLANTED.iter().enumerate() {
            let row = [customer(CUSTOMERS), order(ORDERS), message(MESSAGES)];
            assert!(row[at].contains(text), "{text}");
        }
    }

    #[test]
    fn card_numbers_have_their_check_digit() {
        assert_eq!(luhn("411111111111111"), 1);
        assert_eq!(luhn("7992739871"), 3);
    }
}
