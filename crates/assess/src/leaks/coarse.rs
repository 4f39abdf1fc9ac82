//! How many bits may suffice for a column: what is tried where all of them tell too much.

use onionskin_physical::companions::order_source;

use super::{capability::Capability, dictionary::Dictionary};

/// About how many values are to share a token or key, on average.
const SHARED_BY: [usize; 4] = [4, 16, 64, 256];

/// The same capability with fewer bits, what shows least first; none of a column that has too few
/// values, or values whose order bytes are not known.
pub fn fewer_bits(capability: Capability, dictionary: &Dictionary) -> Vec<Capability> {
    let values = dictionary.classes();
    let wanted = SHARED_BY.map(|shared| values / shared);
    let wanted = wanted.into_iter().filter(|tokens| *tokens >= 2);
    let mut found: Vec<Capability> = match capability {
        Capability::Eq => wanted
            .map(|tokens| Capability::CoarseEq(tokens.ilog2() as u8))
            .collect(),
        Capability::Range => {
            let keys = keys_by_bits(dictionary);
            let most = |tokens: usize| {
                let bits = keys.iter().rposition(|keys| *keys <= tokens)?;
                u8::try_from(bits).ok().filter(|bits| *bits > 0)
            };
            wanted
                .filter_map(most)
                .map(Capability::CoarseRange)
                .collect()
        }
        _ => Vec::new(),
    };
    found.retain(|coarse| coarse.can_be_had(dictionary.sql_type()));
    found.sort_unstable();
    found.dedup();
    found
}

/// How many different keys the values have, by the number of bits that are kept.
fn keys_by_bits(dictionary: &Dictionary) -> Vec<usize> {
    let whole = Capability::Range.capabilities();
    let mut all: Vec<Vec<u8>> = Vec::new();
    for class in 0..dictionary.classes() {
        let mut bytes = Vec::new();
        let payload = dictionary.first_of(class as _);
        if order_source(dictionary.sql_type(), &whole, payload, &mut bytes).is_err() {
            return Vec::new();
        }
        all.push(bytes);
    }
    all.sort_unstable();
    all.dedup();
    let bits = all.first().map_or(0, Vec::len) * 8;
    // two neighbours are told apart from the first bit on in which they differ
    let mut apart = vec![0; bits + 1];
    for pair in all.windows(2) {
        let same = pair[0].iter().zip(&pair[1]).take_while(|(a, b)| a == b);
        let same = same.count();
        let differ = pair[0][same] ^ pair[1][same];
        apart[same * 8 + differ.leading_zeros() as usize + 1] += 1;
    }
    let mut keys = usize::from(!all.is_empty());
    let told = apart.into_iter().map(|more: usize| {
        keys += more;
        keys
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use onionskin_value::{Family, SqlType};

    use super::*;

    fn numbers(count: u32) -> Dictionary {
        let ty = SqlType::parse("int", None).expect("known");
        let mut dictionary = Dictionary::new(ty, Family::MariaDb, 1 << 20);
        for number in 0..count {
            dictionary
                .add_sent(number.to_string().as_bytes())
                .expect("it fits");
        }
        dictionary
    }

    #[test]
    fn tokens_are_shared_by_4_16_64_and_256_values() {
        use Capability::{CoarseEq, CoarseRange, Eq, Like, Range};
        let many = numbers(4096);
        let eq = [4, 6, 8, 10].map(CoarseEq);
        assert_eq!(fewer_bits(Eq, &many), eq);
        // an INT has 32 bits, of which the last twelve differ
        let range = [24, 26, 28, 30].map(CoarseRange);
        assert_eq!(fewer_bits(Range, &many), range);
        assert_eq!(fewer_bits(Eq, &numbers(9)), [CoarseEq(1)]);
        assert!(fewer_bits(Eq, &numbers(7)).is_empty());
        assert!(fewer_bits(Like, &many).is_empty());
    }
}
