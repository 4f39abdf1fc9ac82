//! The configuration that `onionskin init` writes: every setting, with its default or an example.

use crate::config_file::DEFAULT_LISTEN;

/// Who opens the key file: settings.
const KEYS_PROVIDER: &str = r#"# Who opens that file, if not a passphrase or its mode: a key store outside of this machine, which wraps its root key
# (docs/keys.md). How it is reached stands under [provider]. At a start it is asked for so many seconds; while the proxy runs,
# only if a time is set after which the proxy ends unless it has answered again.
# keys_provider      = "exec"
# keys_retry_seconds = 30
# keys_ttl_seconds   = 86400
"#;

/// And how it is reached: sections.
const PROVIDERS: &str = r#"# A program that wraps and unwraps the root key of the key file (docs/keys.md): its path and its arguments.
# [provider.exec]
# command         = ["/usr/local/lib/onionskin/wrap-root-key", "--key", "onionskin"]
# timeout_seconds = 10
# The transit engine of Vault or OpenBao. ONIONSKIN_VAULT_TOKEN_FILE names the token's file; other logins are "approle" and
# "kubernetes".
# [provider.vault]
# address = "https://vault.example:8200"
# ca      = "vault-ca.pem"
# key     = "onionskin"
# A token that speaks PKCS#11: its library, its label, and the key's. ONIONSKIN_PKCS11_PIN_FILE names the PIN's file.
# [provider.pkcs11]
# module = "/usr/lib/softhsm/libsofthsm2.so"
# token  = "onionskin"
# key    = "root"
# AWS KMS. Credentials are those of the AWS tools.
# [provider.aws-kms]
# key    = "alias/onionskin"
# region = "eu-west-1"

"#;

/// The settings of tenants.
const TENANTS: &str = r#"# The secrets of tenants, for columns with KEY BY: onionskin tenants init makes the file, onionskin tenants forget takes single
# tenants out of it (docs/tenants.md). Copies of it decide over forgetting. Relative to this file.
# tenants = "file:tenants.keys"
# What stands for a value of a tenant that was forgotten: "error", or "null".
# forgotten = "error"
"#;

/// A commented configuration for a server at `backend`. `has_engine`: a scratch engine is started
/// with the proxy.
pub fn template(backend: &str, has_engine: bool) -> String {
    let mark = if has_engine { "" } else { "# " };
    // A path may hold anything.
    let backend = toml::Value::String(backend.to_owned());
    format!(
        r#"# Onionskin. Every setting that is commented out shows its default or an example.

# Where applications connect, as they would to their server.
listen  = "{DEFAULT_LISTEN}"
# The server: "host:port" or "unix:/path/to/its.sock".
backend = {backend}
# Or a list of servers, one of which is the primary: backend = ["db1.example.com:3306", "db2.example.com:3306"]
# Then a section [health] names the account that asks them (docs/production.md): user, password_file, interval_seconds,
# timeout_seconds, drain_seconds.
# Where the proxy tells how it is: /live, /ready and /metrics over HTTP. Off unless it is set. An address that other machines
# can reach needs a token, which /metrics then asks for.
# admin = "127.0.0.1:3380"
# admin_token_file = "admin.token"
# A Unix socket of this proxy's own for onionskin reload and check, and for a new version of the program that takes the
# place of this one without a lost connection (serve --take-over). Off unless it is set.
# control = "/run/onionskin/control.sock"
# How long sessions of the old one may go on then.
# handover_seconds = 3600
# Balancers that begin each connection with a header of the PROXY protocol, which tells where their clients are.
# proxy_networks = ["10.0.0.2", "10.0.1.0/24"]
# The keys. Without this file nothing that was encrypted under it can ever be read: keep a copy in another place than the
# copies of the data. Relative to this file.
keys    = "file:keys.json"
{TENANTS}{KEYS_PROVIDER}# Ciphers for new columns: "aes" (AES-256-GCM-SIV, HMAC-SHA-256) or "sm" (SM4-GCM, HMAC-SM3).
suite   = "aes"

# What [protect] below says is for tables that are made through the proxy. Enforced, it holds for those that are
# there as well: statements near a table are refused while a column that it names is plaintext, shows the server more
# than it may, or is missing. Whoever administers the server cannot take it out of protection unnoticed then. A section
# may have a line of its own, to the contrary, while its tables are still to be encrypted.
enforce = true
# What is protected, in a file of this side that onionskin pin writes: statements on a table that is not the one that
# was pinned are refused. Relative to this file.
# pins = "pins"

# TLS to the server: "never", "preferred", "required", or "verify" (its certificate must come from backend_ca and name the
# host). "required" with backend_ca checks the authority only: the certificates that MySQL makes for itself name no host, so
# take "required" and the ca.pem of its data directory for these. The default is "preferred", "verify" if backend_ca is set, and
# "never" on a Unix socket.
# backend_tls = "verify"
# backend_ca  = "ca.pem"
# The server's RSA key (its public_key.pem), for passwords of caching_sha2_password over a link without TLS. A server that is
# reached over TCP gets passwords only under this key, or with its certificate verified as above.
# backend_rsa_key = "public_key.pem"

# Before a client is logged in: seconds for all of its login, and how many log in at once, in all and from one address. Each
# of them holds a connection to the server; others wait.
# login_seconds          = 30
# max_logins             = 64
# max_logins_per_address = 32
# Sessions at once: in all (error 1040), of one account (1203), and from one address (1040). The last two are not limited.
# max_sessions             = 10000
# max_sessions_per_account = 200
# max_sessions_per_address = 500

# Statements whose rows the proxy finishes itself: bytes that all of them may hold at once (one of them, 64 MiB at most), rows
# that one may read, and seconds in which it has to have read them.
# finish_memory  = 1073741824
# finish_rows    = 10000000
# finish_seconds = 600

# A line in the log for each statement that takes so many seconds: its shape without values, and where its time went. Not set:
# none. No more lines in a second than slow_lines.
# slow_seconds = 1
# slow_lines   = 10

# Bounds of what one statement may bring to the scratch engine (see [scratch] below): rows, and bytes of their values.
# scratch_rows   = 1000000
# scratch_memory = 268435456
# Seconds that it may run there, where the session has no max_statement_time (MariaDB) or max_execution_time (MySQL).
# scratch_seconds = 60

# LIKE by full-text indexes on MariaDB. They are no part of transactions and may miss rows; without them all rows are opened.
# Tables that are made while this is off get none.
# MySQL has another index, which needs no setting.
# like_index = false

# TLS for clients. Without this section a new self-signed certificate is made at every start: clients that only want
# encryption are content with it, clients that verify are not.
# [tls]
# cert = "server-cert.pem"
# key  = "server-key.pem"
# Clients without TLS, or without a certificate of this authority, are not let in; and the oldest version that is spoken, "1.2" or "1.3".
# require = true
# client_ca = "clients-ca.pem"
# min_version = "1.2"

# The scratch engine: a server of the same family and version as the one behind, on this side. It runs the statements that
# need values in the clear: functions of protected columns, CASE, window functions, and so on; without it they are refused.
# "auto": serve starts one for itself, in memory (a folder of its own in /dev/shm, or in the one that "folder" names), and needs
# the program of such a server: mariadbd (packages mariadb-server-core and mariadb-client-core) or mysqld. Or name the socket of
# one that runs, in the place of "engine" (docs/scratch.md).
{mark}[scratch]
{mark}engine = "auto"

{PROVIDERS}# What accounts see of protected columns (docs/masks.md): "clear", "null", "refuse", "first:N", "last:N".
# [mask."shop.customers"]
# name = {{ app = "clear", support = "first:1", "role:auditor" = "clear", "*" = "null" }}

# A record of who has read and written protected columns (docs/audit.md): files in a folder, and a file of heads that tells
# whether something was removed, better in another place. While the disk is full, "stop" refuses statements on protected
# columns, and "count" runs and counts them.
# [audit]
# folder    = "/var/log/onionskin/audit"
# heads     = "/var/lib/onionskin/audit.heads"
# file_size = 67108864
# when_full = "stop"

# Cryptographic functions (AES_ENCRYPT, SHA2 and their like) computed by the proxy: the server sees results, and neither keys
# nor texts. secrets are variables whose values stay here. KEY('billing') stands for the key in a file, which begins with
# "text:" or "hex:".
# [functions]
# evaluate = true
# secrets  = ["key"]
# [functions.keys]
# billing = "billing.key"

# What is protected in tables that are created through the proxy. (In CREATE TABLE itself one can also write
# ENCRYPTED FOR (eq, range) behind a column.) Patterns are "database.table"; * stands for any characters. Columns that
# nothing matches stay plaintext. What each capability shows the server is in docs/threat-model.md.
#
# [protect."shop.customers"]
# name  = ["eq"]            # =, IN, GROUP BY, joins; the server sees which rows are equal
# age   = ["eq", "range"]   # also <, BETWEEN, ORDER BY, MIN, MAX; the server sees the order
# about = ["like"]          # LIKE by an index; the server sees which texts share which runs of three characters
# notes = []                # sealed: the server sees the length and whether it is NULL
# "*_id" = "plain"          # not protected, though what stands below would match it
# "*"   = []                # every column that is not listed
# enforce = true            # the default of a section is what stands above
"#
    )
}
