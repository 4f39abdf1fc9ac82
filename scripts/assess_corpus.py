#!/usr/bin/env python3
"""Labelled tables that `onionskin assess data` is measured on, made by Python's Faker.

    scripts/assess_corpus.py [--seed N] [--rows N] [--out FILE]

In eight locales: a table of persons whose columns have names of the language, the same columns under
names that say nothing, and a table of things. Each column has a label: the kind of personal data that
it holds, or none. The same seed and the same Faker make the same file, but for the dates of birth
in some national numbers, which Faker reckons from the day on which it runs. The recorded file,
crates/assess/tests/corpus/tables.json, is made with the defaults. The nightly run makes another one
with other values.

Faker (the version below) is taken from the Python that runs this, or put into target/faker.
"""

import argparse
import datetime
import json
import os
import random
import string
import subprocess
import sys
import venv
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
FAKER = "40.54.0"
HOME = CHECKOUT / "target/faker"

# Names of columns by locale, in the order of KINDS.
NAMES = {
    "en_US": ["first_name", "last_name", "email", "phone", "birth_date", "street_address", "city", "postal_code",
              "ssn", "iban", "card_number", "last_ip", "password_hash", "api_token", "comment", "gender"],
    "de_DE": ["vorname", "nachname", "email_adresse", "telefonnummer", "geburtsdatum", "strasse", "wohnort", "plz",
              "steuer_id", "iban", "kreditkarte", "ip_adresse", "passwort", "zugriffs_token", "bemerkung", "geschlecht"],
    "fr_FR": ["prenom", "nom_de_famille", "courriel", "telephone", "date_naissance", "adresse", "ville", "code_postal",
              "numero_secu", "iban", "carte_bancaire", "adresse_ip", "mot_de_passe", "token", "commentaire", "sexe"],
    "es_ES": ["nombre_completo", "apellidos", "correo", "movil", "fecha_nacimiento", "direccion", "ciudad",
              "codigo_postal", "dni", "iban", "tarjeta", "ip", "contrasena", "token_api", "observaciones", "sexo"],
    "it_IT": ["nome_completo", "cognome", "posta_elettronica", "cellulare", "data_nascita", "indirizzo", "citta",
              "cap", "codice_fiscale", "iban", "carta_di_credito", "indirizzo_ip", "password", "token", "messaggio",
              "sesso"],
    "pt_BR": ["primeiro_nome", "sobrenome", "email", "celular", "data_nascimento", "endereco", "cidade", "cep", "cpf",
              "conta_bancaria", "cartao", "endereco_ip", "senha", "token", "mensagem", "sexo"],
    "pl_PL": ["imie", "nazwisko", "email", "telefon", "data_urodzenia", "adres", "miasto", "kod_pocztowy", "pesel",
              "iban", "karta", "adres_ip", "haslo", "token", "uwagi", "plec"],
    "zh_CN": ["姓名", "xingming", "邮箱", "手机号", "出生日期", "地址", "城市", "邮编", "身份证号", "银行账号", "信用卡",
              "ip地址", "密码", "token", "备注", "性别"],
}
KINDS = ["name", "name", "email", "phone", "birth-date", "address", "place", "place", "national", "iban", "card", "ip",
         "secret", "secret", "free-text", "trait"]
YEARS = (datetime.datetime(2023, 1, 1), datetime.datetime(2026, 1, 1))
TYPES = {"birth-date": "date", "free-text": "text"}


def faker():
    """Faker of this version, under Python's hashes of always: some of its lists are sets."""
    try:
        import faker as found
        right = found.VERSION == FAKER
    except ImportError:
        right = False
    if right and os.environ.get("PYTHONHASHSEED") == "0":
        return found
    python = Path(sys.executable)
    if not right:
        python = HOME / "bin/python"
        if not python.exists():
            venv.create(HOME, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", f"faker=={FAKER}"], check=True)
    os.execve(python, [str(python), *sys.argv], {**os.environ, "PYTHONHASHSEED": "0"})


def token(chance, length):
    return "".join(chance.choice(string.ascii_letters + string.digits) for _ in range(length))


def national(fake, locale):
    return {"es_ES": "nif", "pt_BR": "cpf", "pl_PL": "pesel"}.get(locale, "ssn")


def tax_id(chance):
    """Germany's number: one digit of the first ten stands twice, and ISO 7064 MOD 11,10 checks it."""
    digits = list(range(10))
    chance.shuffle(digits)
    digits[chance.randrange(1, 10)] = digits[0] or 5
    if digits[0] == 0 or sorted(digits.count(d) for d in set(digits))[-2:] != [1, 2]:
        return tax_id(chance)
    product = 10
    for digit in digits:
        total = (product + digit) % 10 or 10
        product = total * 2 % 11
    return "".join(map(str, digits)) + str((11 - product) % 10)


def persons(fake, chance, locale, rows):
    """Values of each kind, in the order of KINDS."""
    number = national(fake, locale)
    text = lambda: " ".join(fake.paragraph(nb_sentences=3).split())
    genders = chance.choice([["m", "f"], ["male", "female"]])
    full = locale in ("es_ES", "it_IT", "zh_CN")
    makers = [
        fake.name if full else fake.first_name,
        fake.name if locale == "zh_CN" else fake.last_name,
        fake.email,
        fake.phone_number,
        lambda: fake.date_between(datetime.date(1931, 1, 1), datetime.date(2007, 12, 31)).isoformat(),
        lambda: " ".join(fake.address().split()) if locale == "zh_CN" else fake.street_address(),
        fake.city,
        fake.postcode,
        (lambda: tax_id(chance)) if locale == "de_DE" else getattr(fake, number),
        fake.iban,
        fake.credit_card_number,
        lambda: chance.choice([fake.ipv4, fake.ipv4, fake.ipv6])(),
        lambda: "$2b$12$" + token(chance, 53),
        lambda: token(chance, 32),
        text,
        lambda: chance.choice(genders),
    ]
    # Some are missing, as they are in tables.
    sparse = lambda value: None if chance.random() < 0.08 else value
    return [[sparse(str(make())) for _ in range(rows)] for make in makers]


def things(fake, chance, locale, rows):
    """Columns of a shop, a log and a stock. Nothing of them is personal."""
    digits = lambda n: lambda: "".join(chance.choice(string.digits) for _ in range(n))
    makers = {
        ("id", "int"): None,
        ("order_number", "varchar"): lambda: f"ORD-{chance.randrange(2019, 2026)}-{chance.randrange(10**6):06}",
        ("reference", "bigint"): digits(11),
        ("tracking_code", "varchar"): digits(16),
        ("serial", "varchar"): digits(9),
        ("amount", "decimal"): lambda: f"{chance.random() * 1000:.2f}",
        ("quantity", "int"): lambda: chance.randrange(1, 500),
        ("created_at", "datetime"): lambda: fake.date_time_between(*YEARS).isoformat(" ", "seconds"),
        ("ship_date", "date"): lambda: fake.date_between(*YEARS).isoformat()[:10],
        ("status", "varchar"): lambda: chance.choice(["new", "paid", "shipped", "returned"]),
        ("product_name", "varchar"): lambda: " ".join(fake.words(2)),
        ("sku", "varchar"): lambda: token(chance, 3).upper() + "-" + digits(4)(),
        ("uuid", "char"): lambda: str(fake.uuid4()),
        ("checksum", "char"): fake.sha256,
        ("currency", "char"): fake.currency_code,
        ("color", "varchar"): fake.color_name,
        ("file_name", "varchar"): fake.file_name,
        ("path", "varchar"): fake.file_path,
        ("url", "varchar"): lambda: f"https://example.org/{fake.slug()}",
        ("version", "varchar"): lambda: f"{chance.randrange(9)}.{chance.randrange(20)}.{chance.randrange(99)}",
        ("mime_type", "varchar"): fake.mime_type,
        ("slug", "varchar"): fake.slug,
        ("email_sent_at", "datetime"): lambda: fake.date_time_between(*YEARS).isoformat(" ", "seconds"),
        ("is_email_verified", "tinyint"): lambda: chance.randrange(2),
        ("weight_kg", "double"): lambda: f"{chance.random() * 30:.3f}",
        ("ean", "char"): fake.ean13,
        ("isbn", "char"): fake.isbn13,
        ("company_name", "varchar"): fake.company,
    }
    return [(name, kind, [str(n + 1 if make is None else make()) for n in range(rows)])
            for (name, kind), make in makers.items()]


def column(name, kind, label, values):
    return {"name": name, "type": kind, "label": label, "values": values}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=28)
    parser.add_argument("--rows", type=int, default=24)
    parser.add_argument("--out", type=Path, default=CHECKOUT / "crates/assess/tests/corpus/tables.json")
    arguments = parser.parse_args()
    library = faker()
    tables = []
    for at, (locale, names) in enumerate(NAMES.items()):
        fake = library.Faker(locale)
        fake.seed_instance(arguments.seed * 100 + at)
        # Some of Faker's providers draw from Python's own.
        random.seed(arguments.seed * 100 + at)
        chance = random.Random(arguments.seed * 100 + at)
        for how in ("named", "opaque"):
            values = persons(fake, chance, locale, arguments.rows)
            columns = [column(name if how == "named" else f"c{n + 1}", TYPES.get(kind, "varchar"), kind, some)
                       for n, (name, kind, some) in enumerate(zip(names, KINDS, values))]
            tables.append({"locale": locale, "how": how, "columns": columns})
        columns = [column(name, kind, None, some) for name, kind, some in things(fake, chance, locale, arguments.rows)]
        tables.append({"locale": locale, "how": "things", "columns": columns})
        columns = [column(f"c{n + 1}", kind, None, some)
                   for n, (_, kind, some) in enumerate(things(fake, chance, locale, arguments.rows))]
        tables.append({"locale": locale, "how": "opaque-things", "columns": columns})
    made = {"faker": FAKER, "seed": arguments.seed, "rows": arguments.rows, "tables": tables}
    # One column a line: differences can be read.
    text = json.dumps(made, ensure_ascii=False).replace('{"name": ', '\n{"name": ').replace('{"locale": ', '\n{"locale": ')
    arguments.out.write_text(text + "\n", encoding="utf-8")
    print(f"{arguments.out}: {sum(len(t['columns']) for t in tables)} columns")


if __name__ == "__main__":
    main()
