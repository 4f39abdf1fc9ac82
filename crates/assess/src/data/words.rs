//! Words that names of columns are made of, in the languages that schemas are written in.
//!
//! A name is cut at `_`, at capitals and at digits: `firstName`, `first_name` and `FIRST_NAME1` are
//! the words `first` and `name`. An entry is one or more of such words. Of Chinese names, which
//! have no borders, an entry is any part.

use super::kind::Kind;

/// How much a name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weight {
    /// It may as well be something else.
    Weak,
    /// Little else has this name.
    Strong,
}

use Weight::{Strong, Weak};

/// Entries; the first one that a name has decides.
const WORDS: &[(Kind, Weight, &str)] = &[
    (
        Kind::Email,
        Strong,
        "email,e mail,mail address,mailaddress,mailadresse,courriel,correo,correio,posta elettronica,eposta,e posta,\
         sahkoposti,epost,poczta,邮箱,电子邮件,メール,이메일",
    ),
    (Kind::Email, Weak, "mail"),
    (
        Kind::Phone,
        Strong,
        "phone,telephone,mobile,cell phone,cellphone,msisdn,telefon,telefonnummer,mobil,handy,handynummer,festnetz,\
         telefono,movil,celular,cellulare,telefone,telemovel,telefoon,komorka,komorkowy,puhelin,gsm,fax,portable,\
         dianhua,shouji,电话,手机,電話,전화",
    ),
    (Kind::Phone, Weak, "tel,cell"),
    (
        Kind::Iban,
        Strong,
        "iban,bank account,account number,kontonummer,bankverbindung,cuenta bancaria,conto corrente,conta bancaria,\
         numer konta,rekeningnummer,银行账号",
    ),
    (
        Kind::Card,
        Strong,
        "credit card,creditcard,card number,cardnumber,card no,cc number,ccnum,cc num,pan,kreditkarte,\
         kreditkartennummer,carte bancaire,numero carte,tarjeta,carta di credito,cartao,karta,银行卡,信用卡",
    ),
    (
        Kind::National,
        Strong,
        "ssn,social security,national id,nationalid,identity number,passport,passport number,tax id,taxid,tin,\
         steuer id,steuerid,steuernummer,sozialversicherungsnummer,personalausweis,ausweisnummer,nir,\
         numero secu,securite sociale,numss,dni,nie,nif,codice fiscale,codicefiscale,cpf,cnpj,rg,pesel,nip,bsn,\
         burgerservicenummer,personnummer,hetu,henkilotunnus,fodselsnummer,rijksregisternummer,kimlik,tckn,rrn,\
         aadhaar,aadhar,pan card,ahv,nino,drivers license,driver license,license number,licence number,\
         fuhrerschein,shenfenzheng,sfz,id card,idcard,身份证,证件号,护照,주민등록번호",
    ),
    (
        Kind::Secret,
        Strong,
        "password,passwd,passphrase,pwd,passwort,kennwort,mot de passe,motdepasse,contrasena,senha,haslo,wachtwoord,\
         secret,token,api key,apikey,access key,private key,client secret,session key,auth key,otp,totp,pin code,\
         salt,cvv,cvc,密码,パスワード",
    ),
    (Kind::Secret, Weak, "hash,credential,pin,auth"),
    (
        Kind::BirthDate,
        Strong,
        "birth date,birthdate,birthday,date of birth,dob,born,born on,geburtsdatum,geburtstag,geboren,\
         date naissance,date de naissance,naissance,fecha nacimiento,fecha de nacimiento,nacimiento,data nascita,\
         data di nascita,nascita,data nascimento,data de nascimento,nascimento,data urodzenia,urodziny,geboortedatum,\
         dogum tarihi,syntymaaika,fodelsedatum,chusheng,shengri,出生日期,生日,出生,誕生日,생년월일",
    ),
    (Kind::BirthDate, Strong, PARTS_OF_DATES),
    (
        Kind::Ip,
        Strong,
        "ip,ip address,ipaddress,ipaddr,remote addr,client ip,last ip,ipv4,ipv6,adresse ip,direccion ip,ip地址",
    ),
    (
        Kind::Name,
        Strong,
        "first name,firstname,last name,lastname,given name,givenname,family name,surname,full name,fullname,fname,\
         lname,middle name,maiden name,vorname,nachname,familienname,geburtsname,prenom,nom famille,nom de famille,\
         nom complet,apellido,apellidos,nombre completo,primer nombre,cognome,nome completo,nome cognome,sobrenome,\
         primeiro nome,imie,nazwisko,imie nazwisko,voornaam,achternaam,fornamn,efternamn,etunimi,sukunimi,ad soyad,\
         soyad,customer name,patient name,contact name,person name,employee name,cardholder,account holder,kontoinhaber,\
         xingming,姓名,名字,姓,氏名,이름",
    ),
    (
        Kind::Name,
        Weak,
        "name,nom,nombre,nome,nazwa,naam,namn,display name,nickname,username,user name,login,ad",
    ),
    (
        Kind::Place,
        Strong,
        "city,town,zip,zip code,zipcode,postcode,postal code,postalcode,plz,postleitzahl,ort,wohnort,stadt,ville,\
         code postal,codepostal,ciudad,codigo postal,poblacion,citta,cap,comune,cidade,cep,bairro,miasto,kod pocztowy,\
         miejscowosc,stad,woonplaats,latitude,longitude,geo location,birth place,birthplace,geburtsort,\
         chengshi,youbian,城市,邮编",
    ),
    (
        Kind::Place,
        Weak,
        "lat,lng,lon,region,state,province,country,county,land,pays,pais,paese,kraj,location,place",
    ),
    (
        Kind::Address,
        Strong,
        "address,street,street address,home address,addr,adresse,anschrift,strasse,hausnummer,rue,direccion,calle,\
         domicilio,indirizzo,via,endereco,rua,logradouro,adres,ulica,straat,adress,gata,osoite,katuosoite,dizhi,\
         地址,住址,住所,주소",
    ),
    (
        Kind::Health,
        Strong,
        "diagnosis,diagnoses,diagnose,diagnostic,diagnostico,diagnosi,icd,icd10,icd code,disease,illness,krankheit,\
         medication,medikament,medicament,medicamento,prescription,rezept,allergy,allergies,allergie,blood type,\
         blood group,blutgruppe,groupe sanguin,gruppo sanguigno,tipo sanguineo,grupa krwi,symptom,symptoms,anamnesis,\
         anamnese,befund,treatment,therapy,therapie,disability,vaccine,impfung,hiv,bmi,诊断,病历,血型,过敏",
    ),
    (
        Kind::Trait,
        Strong,
        "gender,sex,religion,ethnicity,ethnic,race,nationality,citizenship,marital status,sexual orientation,\
         political,union member,geschlecht,konfession,staatsangehorigkeit,familienstand,sexe,nationalite,\
         situation familiale,genero,sexo,nacionalidad,estado civil,genere,sesso,nazionalita,nacionalidade,plec,\
         narodowosc,stan cywilny,geslacht,marital,salary,wage,lohn,gehalt,salaire,salario,stipendio,income,xingbie,minzu,性别,民族,婚姻",
    ),
    (Kind::Trait, Strong, YES_OR_NO),
    (
        Kind::FreeText,
        Weak,
        "comment,comments,note,notes,remark,remarks,description,message,bemerkung,notiz,kommentar,nachricht,\
         commentaire,remarque,comentario,nota,observaciones,commento,messaggio,observacao,mensagem,uwagi,komentarz,\
         wiadomosc,bio,about me,letter,body,beizhu,备注,留言",
    ),
];

/// Years, months and days of birth: numbers.
const PARTS_OF_DATES: &str = "birth year,birthyear,year of birth,birth month,birthmonth,month of birth,birth day,day of birth,\
                              yob,geburtsjahr,annee naissance,annee de naissance,ano nacimiento,ano de nacimiento,anno nascita,\
                              anno di nascita,ano nascimento,ano de nascimento,rok urodzenia,geboortejaar,出生年";

/// Traits that a person has or not.
const YES_OR_NO: &str = "female,male,married,hispanic";

/// Entries of places that numbers can be.
const POSTCODES: &str = "zip,zip code,zipcode,postcode,postal code,postalcode,plz,postleitzahl,code postal,codepostal,\
                         codigo postal,cap,cep,kod pocztowy,youbian,邮编";

/// Entries of places that fractions can be.
const COORDINATES: &str = "latitude,longitude,geo location,lat,lng,lon";

fn is_listed(list: &str, entry: &str) -> bool {
    list.split(',').any(|listed| listed.trim() == entry)
}

/// Whether an entry is a part of a date of birth.
pub(super) fn is_part_of_date(entry: &str) -> bool {
    is_listed(PARTS_OF_DATES, entry)
}

/// Whether an entry is a trait that a person has or not.
pub(super) fn is_yes_or_no(entry: &str) -> bool {
    is_listed(YES_OR_NO, entry)
}

/// Whether an entry is a postcode.
pub(super) fn is_postcode(entry: &str) -> bool {
    is_listed(POSTCODES, entry)
}

/// Whether an entry is a coordinate.
pub(super) fn is_coordinate(entry: &str) -> bool {
    is_listed(COORDINATES, entry)
}

/// Names with these words in them are of things.
const OF_THINGS: &[&str] = &[
    "file", "table", "column", "product", "event", "host", "domain", "class", "method", "function",
    "module", "tag", "role", "group", "plan", "status", "type", "company", "brand", "item", "job",
    "queue", "theme", "template", "field", "plugin", "server", "database", "schema", "index",
    "currency", "unit", "model", "app", "option", "meta", "mac", "species", "color", "colour",
    "menu", "page", "category", "firma", "produkt", "produit", "producto", "prodotto", "artikel",
    "datei",
];

/// Last words that say something about a value, and are none.
const ABOUT: &[&str] = &[
    "at",
    "count",
    "id",
    "sent",
    "verified",
    "enabled",
    "confirmed",
    "valid",
    "type",
    "format",
    "length",
    "hash",
    "provider",
    "template",
    "status",
    "flag",
    "required",
    "version",
    "visible",
    "expires",
    "expiry",
    "attempts",
];

/// First words of questions.
const QUESTIONS: &[&str] = &[
    "is", "has", "can", "num", "count", "total", "allow", "send", "enable", "max", "min",
];

/// A name's words in small letters without accents.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for c in name.chars() {
        let is_border = !c.is_alphanumeric() || c.is_ascii_digit();
        if is_border || (c.is_uppercase() && before.is_lowercase()) {
            words.push(String::new());
        }
        if !is_border && let Some(word) = words.last_mut() {
            word.extend(c.to_lowercase().map(plain));
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

fn plain(c: char) -> char {
    match c {
        'à' | 'á' | 'â' | 'ã' | 'ä' | 'å' | 'ą' => 'a',
        'ç' | 'ć' | 'č' => 'c',
        'è' | 'é' | 'ê' | 'ë' | 'ę' => 'e',
        'ì' | 'í' | 'î' | 'ï' | 'ı' => 'i',
        'ł' => 'l',
        'ñ' | 'ń' => 'n',
        'ò' | 'ó' | 'ô' | 'õ' | 'ö' | 'ø' => 'o',
        'ś' | 'ş' | 'š' => 's',
        'ù' | 'ú' | 'û' | 'ü' => 'u',
        'ź' | 'ż' | 'ž' => 'z',
        'ğ' => 'g',
        c => c,
    }
}

/// Whether a name has a word of things in it.
pub(super) fn is_of_thing(name: &str) -> bool {
    words(name)
        .iter()
        .any(|word| OF_THINGS.contains(&word.as_str()))
}

/// What a name says, with the entry that says it: the best one of those that may be.
pub(super) fn said(
    name: &str,
    may_be: impl Fn(Kind, &str) -> bool,
) -> Option<(Kind, Weight, &'static str)> {
    let words = words(name);
    let spaced = format!(" {} ", words.join(" "));
    let has = |entry: &str| match entry.is_ascii() {
        true => spaced.contains(&format!(" {entry} ")) || spaced.contains(&format!(" {entry}s ")),
        false => name.contains(entry),
    };
    let is_about = words.len() > 1
        && (words
            .last()
            .is_some_and(|last| ABOUT.contains(&last.as_str()))
            || words
                .first()
                .is_some_and(|first| QUESTIONS.contains(&first.as_str())));
    let is_of_thing = is_of_thing(name);
    let mut best: Option<(Kind, Weight, &'static str)> = None;
    for (kind, weight, entries) in WORDS {
        for entry in entries.split(',').map(str::trim) {
            // A longer entry knows more: `ip address` is no `address`.
            let length = |entry: &str| entry.chars().count() * if entry.is_ascii() { 1 } else { 4 };
            let is_better = best.is_none_or(|(_, b, e)| (*weight, length(entry)) > (b, length(e)));
            if has(entry) && is_better && may_be(*kind, entry) {
                best = Some((*kind, *weight, entry));
            }
        }
    }
    let (kind, weight, entry) = best?;
    // `tax_id` and `ip` are whole: what stands behind them is not about them.
    let ends_the_name = spaced.trim_end().ends_with(entry);
    match (is_about && !ends_the_name, is_of_thing, kind) {
        (true, ..) | (_, true, Kind::Name) => None,
        (_, true, _) => Some((kind, Weight::Weak, entry)),
        _ => Some((kind, weight, entry)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_understood_in_several_languages() {
        for (name, kind) in [
            ("email", Kind::Email),
            ("contactEmail", Kind::Email),
            ("customer_first_name", Kind::Name),
            ("Nachname", Kind::Name),
            ("prénom", Kind::Name),
            ("fecha_de_nacimiento", Kind::BirthDate),
            ("codice_fiscale", Kind::National),
            ("numer_pesel", Kind::National),
            ("endereço", Kind::Address),
            ("ip_address", Kind::Ip),
            ("user_tax_id", Kind::National),
            ("手机号码", Kind::Phone),
            ("身份证号", Kind::National),
            ("出生日期", Kind::BirthDate),
            ("api_key", Kind::Secret),
            ("ICD10_code", Kind::Health),
            ("plz", Kind::Place),
            ("phones", Kind::Phone),
        ] {
            let said = said(name, |_, _| true);
            assert_eq!(
                said.map(|s| (s.0, s.1)),
                Some((kind, Weight::Strong)),
                "{name}: {said:?}"
            );
        }
    }

    #[test]
    fn names_of_things_are_not_names() {
        for name in [
            "file_name",
            "product_name",
            "email_sent_at",
            "is_email_verified",
            "phone_count",
            "amount",
            "created_at",
            "quantity",
            "panel",
            "ship_date",
            "template",
        ] {
            assert_eq!(said(name, |_, _| true), None, "{name}");
        }
    }
}
