//! Numbers with check digits: cards, bank accounts, and what states number their people by.
//!
//! Each function takes a number without separators and says whether its check digits are right. The
//! rules are those that the issuers publish; tests have published examples.

/// Luhn: ISO/IEC 7812.
pub(super) fn luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| match at % 2 {
            0 => u32::from(*digit),
            _ => {
                let twice = u32::from(*digit) * 2;
                twice / 10 + twice % 10
            }
        })
        .sum();
    sum.is_multiple_of(10)
}

/// Payment cards: 13 to 19 digits that begin as a network's do.
pub(super) fn card(digits: &[u8]) -> bool {
    let first = number(digits.get(..4).unwrap_or_default());
    let begins =
        matches!(first, 3000..=3999 | 4000..=4999 | 5000..=5899 | 6000..=6999 | 2221..=2720);
    (13..=19).contains(&digits.len()) && begins && varied(digits) && luhn(digits)
}

/// ISO 13616: letters count from 10, the first four characters go to the end, the rest modulo 97
/// is 1.
pub(super) fn iban(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_head = bytes.len() >= 15
        && bytes.len() <= 34
        && bytes[..2].iter().all(u8::is_ascii_uppercase)
        && bytes[2..4].iter().all(u8::is_ascii_digit);
    if !is_head
        || !bytes
            .iter()
            .all(|b| b.is_ascii_digit() || b.is_ascii_uppercase())
    {
        return false;
    }
    let turned = bytes[4..].iter().chain(&bytes[..4]);
    let rest = turned.fold(0_u32, |rest, b| match b {
        b'0'..=b'9' => (rest * 10 + u32::from(b - b'0')) % 97,
        _ => (rest * 100 + u32::from(b - b'A') + 10) % 97,
    });
    rest == 1
}

/// Countries whose number this is, the surest first. `text` has no separators and upper case
/// letters; `digits` are those of it, if it has nothing else.
pub(super) fn countries(text: &str, digits: Option<&[u8]>) -> Vec<&'static str> {
    let mut found = Vec::new();
    let mut note = |is_it: bool, country: &'static str| {
        if is_it {
            found.push(country);
        }
    };
    note(china(text), "China: resident identity number");
    note(italy(text), "Italy: codice fiscale");
    note(spain(text), "Spain: DNI or NIE");
    note(finland(text), "Finland: HETU");
    note(france(text), "France: NIR");
    if let Some(digits) = digits.filter(|digits| varied(digits)) {
        note(korea(digits), "South Korea: resident registration number");
        note(switzerland(digits), "Switzerland: AHV number");
        note(belgium(digits), "Belgium: national register number");
        note(norway(digits), "Norway: fødselsnummer");
        note(poland(digits), "Poland: PESEL");
        note(turkey(digits), "Turkey: T.C. kimlik no");
        note(brazil(digits), "Brazil: CPF or CNPJ");
        note(sweden(digits), "Sweden: personnummer");
        note(germany(digits), "Germany: Steuer-ID");
        note(india(digits), "India: Aadhaar");
        note(netherlands(digits), "Netherlands: BSN");
    }
    found
}

fn number(digits: &[u8]) -> u64 {
    digits.iter().fold(0, |n, d| n * 10 + u64::from(*d))
}

/// Not one digit all over: fillers pass many checks.
fn varied(digits: &[u8]) -> bool {
    digits.windows(2).any(|pair| pair[0] != pair[1])
}

fn weighted(digits: &[u8], weights: &[u32]) -> u32 {
    digits
        .iter()
        .zip(weights)
        .map(|(d, w)| u32::from(*d) * w)
        .sum()
}

fn is_day(month: u64, day: u64) -> bool {
    (1..=12).contains(&month) && (1..=31).contains(&day)
}

/// GB 11643: ISO 7064 MOD 11-2, with a date of birth.
fn china(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() != 18 || !bytes[..17].iter().all(u8::is_ascii_digit) {
        return false;
    }
    let digits: Vec<u8> = bytes[..17].iter().map(|b| b - b'0').collect();
    const WEIGHTS: [u32; 17] = [7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2];
    let check = b"10X98765432"[weighted(&digits, &WEIGHTS) as usize % 11];
    let year = number(&digits[6..10]);
    (1850..=2100).contains(&year)
        && is_day(number(&digits[10..12]), number(&digits[12..14]))
        && bytes[17] == check
}

/// Sixteen characters; those at odd places count by a table.
fn italy(text: &str) -> bool {
    const ODD: [u32; 26] = [
        1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24,
        23,
    ];
    let bytes = text.as_bytes();
    let is_form = bytes.len() == 16
        && bytes[..6].iter().all(u8::is_ascii_uppercase)
        && b"ABCDEHLMPRST".contains(&bytes[8])
        && bytes[11].is_ascii_uppercase()
        && bytes
            .iter()
            .all(|b| b.is_ascii_digit() || b.is_ascii_uppercase());
    if !is_form {
        return false;
    }
    let place = |b: u8| match b {
        b'0'..=b'9' => b - b'0',
        _ => b - b'A',
    };
    let sum: u32 = bytes[..15]
        .iter()
        .enumerate()
        .map(|(at, b)| match at % 2 {
            0 => ODD[usize::from(place(*b))],
            _ => u32::from(place(*b)),
        })
        .sum();
    b'A' + u8::try_from(sum % 26).unwrap_or_default() == bytes[15]
}

/// Eight digits, of which X, Y or Z may stand for the first, and a letter.
fn spain(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() != 9 {
        return false;
    }
    let first = match bytes[0] {
        b'X' => b'0',
        b'Y' => b'1',
        b'Z' => b'2',
        first => first,
    };
    let all = [&[first], &bytes[1..8]].concat();
    if !all.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let number = all
        .iter()
        .fold(0_usize, |n, b| n * 10 + usize::from(b - b'0'));
    b"TRWAGMYFPDXBNJZSQVHLCKE"[number % 23] == bytes[8]
}

/// DDMMYY, a sign of the century, three digits and a character.
fn finland(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_form =
        (bytes.len() == 11 || bytes.len() == 10) && bytes[..6].iter().all(u8::is_ascii_digit);
    if !is_form {
        return false;
    }
    // Separators may have been taken away.
    let rest = match bytes.len() {
        11 if b"+-YXWVUABCDEF".contains(&bytes[6]) => &bytes[7..],
        10 => &bytes[6..],
        _ => return false,
    };
    if !rest[..3].iter().all(u8::is_ascii_digit) {
        return false;
    }
    let number = bytes[..6]
        .iter()
        .chain(&rest[..3])
        .fold(0_usize, |n, b| n * 10 + usize::from(b - b'0'));
    let (day, month) = (number / 10_000_000, number / 100_000 % 100);
    is_day(month as u64, day as u64) && b"0123456789ABCDEFHJKLMNPRSTUVWXY"[number % 31] == rest[3]
}

/// Thirteen digits, Corsica with a letter, and 97 less the rest.
fn france(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() != 15 || !matches!(bytes[0], b'1' | b'2' | b'3' | b'4' | b'7' | b'8') {
        return false;
    }
    // Corsica's letters count as departments 19 and 18.
    let digits = match &bytes[5..7] {
        b"2A" => text.replacen("2A", "19", 1),
        b"2B" => text.replacen("2B", "18", 1),
        _ => text.to_owned(),
    };
    if !digits.is_ascii() {
        return false;
    }
    let (Ok(head), Ok(key)) = (digits[..13].parse::<u64>(), digits[13..].parse::<u64>()) else {
        return false;
    };
    97 - head % 97 == key
}

fn korea(digits: &[u8]) -> bool {
    const WEIGHTS: [u32; 12] = [2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5];
    digits.len() == 13
        && is_day(number(&digits[2..4]), number(&digits[4..6]))
        && (11 - weighted(&digits[..12], &WEIGHTS) % 11) % 10 == u32::from(digits[12])
}

/// EAN-13 that begins with 756.
fn switzerland(digits: &[u8]) -> bool {
    const WEIGHTS: [u32; 13] = [1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1];
    digits.len() == 13
        && digits.starts_with(&[7, 5, 6])
        && weighted(digits, &WEIGHTS).is_multiple_of(10)
}

/// YYMMDD, three digits, and 97 less the rest; a 2 goes before since 2000.
fn belgium(digits: &[u8]) -> bool {
    if digits.len() != 11 || number(&digits[2..4]) > 12 || number(&digits[4..6]) > 31 {
        return false;
    }
    let (head, key) = (number(&digits[..9]), number(&digits[9..]));
    97 - head % 97 == key || 97 - (2_000_000_000 + head) % 97 == key
}

fn norway(digits: &[u8]) -> bool {
    if digits.len() != 11 {
        return false;
    }
    let day = number(&digits[..2]) % 40;
    let first = weighted(digits, &[3, 7, 6, 1, 8, 9, 4, 5, 2, 1]);
    let second = weighted(digits, &[5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1]);
    is_day(number(&digits[2..4]) % 40, day) && first.is_multiple_of(11) && second.is_multiple_of(11)
}

/// YYMMDD, where the month has 20 more since 2000.
fn poland(digits: &[u8]) -> bool {
    digits.len() == 11
        && is_day(number(&digits[2..4]) % 20, number(&digits[4..6]))
        && weighted(digits, &[1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1]).is_multiple_of(10)
}

fn turkey(digits: &[u8]) -> bool {
    if digits.len() != 11 || digits[0] == 0 {
        return false;
    }
    let sum = |from: usize| -> i32 {
        digits[from..9]
            .iter()
            .step_by(2)
            .map(|d| i32::from(*d))
            .sum()
    };
    let tenth = (sum(0) * 7 - sum(1)).rem_euclid(10);
    let last = digits[..10].iter().map(|d| i32::from(*d)).sum::<i32>() % 10;
    tenth == i32::from(digits[9]) && last == i32::from(digits[10])
}

/// Two digits modulo 11, of eleven digits for persons, fourteen for firms.
fn brazil(digits: &[u8]) -> bool {
    let check = |weights: &[u32]| {
        let rest = weighted(digits, weights) % 11;
        let digit = if rest < 2 { 0 } else { 11 - rest };
        digits
            .get(weights.len())
            .is_some_and(|d| u32::from(*d) == digit)
    };
    match digits.len() {
        11 => check(&[10, 9, 8, 7, 6, 5, 4, 3, 2]) && check(&[11, 10, 9, 8, 7, 6, 5, 4, 3, 2]),
        14 => {
            check(&[5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2])
                && check(&[6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2])
        }
        _ => false,
    }
}

/// YYMMDD and four digits by Luhn, with or without the century; the day of those who are not
/// registered has 60 more.
fn sweden(digits: &[u8]) -> bool {
    let digits = match digits.len() {
        12 if matches!(digits[..2], [1, 8 | 9] | [2, 0]) => &digits[2..],
        10 => digits,
        _ => return false,
    };
    is_day(number(&digits[2..4]), number(&digits[4..6]) % 60) && luhn(digits)
}

/// ISO 7064 MOD 11,10. One digit of the first ten stands two or three times.
fn germany(digits: &[u8]) -> bool {
    if digits.len() != 11 || digits[0] == 0 {
        return false;
    }
    let times = |digit: u8| digits[..10].iter().filter(|d| **d == digit).count();
    let repeated = (0..10).filter(|digit| times(*digit) > 1).count();
    let product = digits[..10].iter().fold(10_u32, |product, digit| {
        let sum = match (product + u32::from(*digit)) % 10 {
            0 => 10,
            sum => sum,
        };
        sum * 2 % 11
    });
    repeated == 1 && (0..10).all(|d| times(d) <= 3) && (11 - product) % 10 == u32::from(digits[10])
}

/// Verhoeff: permutations in the dihedral group of ten elements.
fn india(digits: &[u8]) -> bool {
    const TURN: [u8; 10] = [1, 5, 7, 6, 2, 8, 3, 0, 9, 4];
    if digits.len() != 12 || digits[0] < 2 {
        return false;
    }
    let multiply = |a: u8, b: u8| match (a < 5, b < 5) {
        (true, true) => (a + b) % 5,
        (true, false) => (a + b - 5) % 5 + 5,
        (false, true) => (a - 5 + 5 - b) % 5 + 5,
        (false, false) => (a + 5 - b) % 5,
    };
    let check = digits
        .iter()
        .rev()
        .enumerate()
        .fold(0, |check, (at, digit)| {
            let turned = (0..at % 8).fold(*digit, |d, _| TURN[usize::from(d)]);
            multiply(check, turned)
        });
    check == 0
}

/// Weights 9 to 2, and the last digit is taken away.
fn netherlands(digits: &[u8]) -> bool {
    digits.len() == 9
        && (weighted(digits, &[9, 8, 7, 6, 5, 4, 3, 2]) as i32 - i32::from(digits[8])) % 11 == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<&'static str> {
        let digits: Option<Vec<u8>> = text
            .bytes()
            .map(|b| b.is_ascii_digit().then(|| b - b'0'))
            .collect();
        let found = countries(text, digits.as_deref());
        found
            .iter()
            .map(|c| c.split(':').next().unwrap_or_default())
            .collect()
    }

    /// Examples that the issuers publish, or that are made up by their rules elsewhere.
    const RIGHT: [(&str, &str); 22] = [
        ("11010519491231002X", "China"),
        ("440524188001010014", "China"),
        ("RSSMRA85T10A562S", "Italy"),
        ("12345678Z", "Spain"),
        ("X1234567L", "Spain"),
        ("131052-308T", "Finland"),
        ("010594Y9032", "Finland"),
        ("255081416802538", "France"),
        ("7569217076985", "Switzerland"),
        ("85073003328", "Belgium"),
        ("17073003384", "Belgium"),
        ("29029600013", "Norway"),
        ("44051401359", "Poland"),
        ("02070803628", "Poland"),
        ("10000000146", "Turkey"),
        ("11144477735", "Brazil"),
        ("11222333000181", "Brazil"),
        ("8112189876", "Sweden"),
        ("198112189876", "Sweden"),
        ("86095742719", "Germany"),
        ("234123412346", "India"),
        ("111222333", "Netherlands"),
    ];

    #[test]
    fn published_examples_are_right() {
        for (number, country) in RIGHT {
            assert!(of(number).contains(&country), "{number}: {:?}", of(number));
        }
        assert!(korea(&[9, 7, 1, 0, 1, 3, 9, 0, 1, 9, 9, 0, 2]));
        for number in ["4111111111111111", "5555555555554444", "378282246310005"] {
            let digits: Vec<u8> = number.bytes().map(|b| b - b'0').collect();
            assert!(card(&digits), "{number}");
        }
        for number in [
            "GB82WEST12345698765432",
            "DE89370400440532013000",
            "NO9386011117947",
        ] {
            assert!(iban(number), "{number}");
        }
    }

    /// A digit that is wrong is found, for every place of every example.
    #[test]
    fn one_wrong_digit_is_found() {
        for (number, country) in RIGHT {
            let mut passed = 0;
            let mut tried = 0;
            for at in 0..number.len() {
                let mut wrong = number.as_bytes().to_vec();
                if wrong[at].is_ascii_digit() {
                    wrong[at] = b'0' + (wrong[at] - b'0' + 1) % 10;
                    tried += 1;
                    let wrong = String::from_utf8(wrong).expect("ASCII");
                    passed += usize::from(of(&wrong).contains(&country));
                }
            }
            assert!(passed == 0, "{country} {number}: {passed} of {tried}");
        }
        assert!(!iban("GB82WEST12345698765433"));
        assert!(!luhn(&[4, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2]));
    }

    /// How many random numbers of eleven digits pass: what a column of them would show by chance.
    #[test]
    fn random_numbers_seldom_pass() {
        let mut state = 1_u64;
        let mut passed = 0;
        for _ in 0..10_000 {
            let mut digits = Vec::new();
            for _ in 0..11 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                digits.push(
                    u8::try_from(state >> 33)
                        .map_or(0, |d| d % 10)
                        .max(((state >> 40) % 10) as u8),
                );
            }
            let text: String = digits.iter().map(|d| char::from(b'0' + d)).collect();
            passed += usize::from(!countries(&text, Some(&digits)).is_empty());
        }
        assert!(passed < 2_500, "{passed} of 10000");
    }
}
