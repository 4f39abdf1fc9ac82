//! From the value of the column that says whose a row is to the tenant whose secret seals it.

use std::borrow::Cow;

use onionskin_crypt::{TenantId, TenantNames};
use onionskin_schema::Tenant;
use onionskin_value::{Kind, SqlType};

/// The tenant that a value of this type names. `text` is the value as a result in UTF-8 has it, and
/// the bytes themselves of a binary one. `None`: no column of such a type names one, or nobody
/// knows tenants here.
pub fn tenant_id(
    names: Option<&TenantNames>,
    tenant: &Tenant,
    ty: &SqlType,
    text: &[u8],
) -> Option<TenantId> {
    Some(names?.id(&tenant.name, &canonical(ty, text)?))
}

/// The text by which `onionskin tenants` names the same tenant: whole numbers without zeros in
/// front (ZEROFILL), texts without blanks at the end, bytes in hexadecimal.
fn canonical<'t>(ty: &SqlType, text: &'t [u8]) -> Option<Cow<'t, [u8]>> {
    Some(match ty.kind {
        _ if !Tenant::can_be(ty) => return None,
        Kind::Char { .. } | Kind::VarChar { .. } => {
            let end = text.iter().rposition(|b| *b != b' ').map_or(0, |at| at + 1);
            let text = &text[..end];
            std::str::from_utf8(text).ok()?;
            Cow::Borrowed(text)
        }
        Kind::Binary { .. } | Kind::VarBinary { .. } => {
            let digits: String = text.iter().map(|byte| format!("{byte:02x}")).collect();
            Cow::Owned(format!("0x{digits}").into_bytes())
        }
        _ => {
            let (sign, digits) = match text {
                [b'-', digits @ ..] => (&b"-"[..], digits),
                digits => (&b""[..], digits),
            };
            if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
                return None;
            }
            let zeros = digits.iter().take_while(|b| **b == b'0').count();
            let digits = &digits[zeros.min(digits.len() - 1)..];
            match sign {
                b"" => Cow::Borrowed(digits),
                sign => Cow::Owned([sign, digits].concat()),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_tenant_has_one_text() {
        let check = |ty: &str, collation: Option<&str>, text: &[u8], wanted: Option<&str>| {
            let ty = SqlType::parse(ty, collation).unwrap();
            let found = canonical(&ty, text);
            assert_eq!(found.as_deref(), wanted.map(str::as_bytes), "{text:?}");
        };
        check("int", None, b"42", Some("42"));
        check("int(5) unsigned zerofill", None, b"00042", Some("42"));
        check("bigint", None, b"-7", Some("-7"));
        check("int", None, b"0", Some("0"));
        check("int(3) unsigned zerofill", None, b"000", Some("0"));
        check("int", None, b"4.2", None);
        check("varchar(9)", Some("utf8mb4_bin"), b"Ab  ", Some("Ab"));
        check("char(9)", Some("utf8mb4_bin"), b"", Some(""));
        check("varchar(9)", Some("utf8mb4_bin"), b"\xff", None);
        check("binary(2)", None, b"\x0a\xff", Some("0x0aff"));
        check("date", None, b"2020-01-01", None);
        check("decimal(5,0)", None, b"42", None);
    }
}
