//! Rules about accounts: whom they name, and which of them holds for a session.

/// Whom a rule is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Whom {
    /// `user@host`, as the server names the account.
    Account(String),
    /// `user`, at any host.
    User(String),
    /// `role:name`
    Role(String),
    /// `*`
    Others,
}

impl Whom {
    pub fn parse(word: &str) -> Self {
        match word.strip_prefix("role:") {
            Some(role) => Whom::Role(role.to_owned()),
            None if word == "*" => Whom::Others,
            None if word.contains('@') => Whom::Account(word.to_owned()),
            None => Whom::User(word.to_owned()),
        }
    }
}

/// An account and its active roles.
pub(crate) struct Identity<'a> {
    account: &'a str,
    roles: Vec<String>,
}

impl<'a> Identity<'a> {
    /// From `user@host`, and perhaps ` as ` and what `CURRENT_ROLE()` says: on MariaDB a role's
    /// name, on MySQL a list of quoted names with hosts, or `NONE`. Names of users and roles may
    /// hold ` as ` and `@`: then there are several readings.
    pub fn readings(account: &'a str) -> Vec<Self> {
        const BETWEEN: &str = " as ";
        let parts = account.match_indices(BETWEEN);
        let parts = parts.map(|(at, _)| (&account[..at], &account[at + BETWEEN.len()..]));
        let parts: Vec<_> = parts.filter(|(account, _)| account.contains('@')).collect();
        let mut readings: Vec<Self> = parts
            .iter()
            .map(|&(account, roles)| Identity {
                account,
                roles: match roles.starts_with('`') {
                    false => vec![roles.to_owned()],
                    true => quoted_names(roles),
                },
            })
            .collect();
        // no host has blanks in it, and MySQL's roles are quoted
        let is_host = |behind: &str| !behind.contains(BETWEEN);
        let has_no_role = account.rsplit('@').next().is_some_and(is_host);
        if has_no_role && !parts.iter().any(|(_, roles)| roles.starts_with('`')) {
            readings.push(Identity {
                account,
                roles: Vec::new(),
            });
        }
        readings
    }

    fn user(&self) -> &str {
        self.account
            .rsplit_once('@')
            .map_or(self.account, |(user, _)| user)
    }

    /// Of what is said of accounts, what holds for this one: the account before the user before
    /// roles before all others.
    pub fn what_is_said<'r, T>(&self, rules: &'r [(Whom, T)]) -> Vec<&'r T> {
        let of = |wanted: &dyn Fn(&Whom) -> bool| -> Vec<&'r T> {
            let found = rules.iter().filter(|(whom, _)| wanted(whom));
            found.map(|(_, what)| what).collect()
        };
        let is_account = |whom: &Whom| matches!(whom, Whom::Account(name) if name == self.account);
        let is_user = |whom: &Whom| matches!(whom, Whom::User(name) if name == self.user());
        let is_role = |whom: &Whom| matches!(whom, Whom::Role(name) if self.roles.contains(name));
        let is_other = |whom: &Whom| *whom == Whom::Others;
        let levels: [&dyn Fn(&Whom) -> bool; 4] = [&is_account, &is_user, &is_role, &is_other];
        let found = levels.into_iter().map(of).find(|found| !found.is_empty());
        found.unwrap_or_default()
    }
}

/// The names in `` `a`@`%`,`b`@`%` ``, without hosts.
fn quoted_names(list: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = list;
    while let Some((name, behind)) = quoted(rest) {
        names.push(name);
        let host = behind.strip_prefix('@').and_then(quoted);
        rest = host.map_or(behind, |(_, behind)| behind);
        rest = rest.strip_prefix(',').unwrap_or_default();
    }
    names
}

/// A name in back quotes at the beginning, and what stands behind it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut rest = text.strip_prefix('`')?;
    let mut name = String::new();
    loop {
        let (part, behind) = rest.split_once('`')?;
        name.push_str(part);
        match behind.strip_prefix('`') {
            Some(behind) => {
                name.push('`');
                rest = behind;
            }
            None => return Some((name, behind)),
        }
    }
}
