//! Which servers are not there when the proxy begins to serve: a line in the log for each. Nobody
//! waits for it, since they may come later.

use std::thread;

use onionskin_proxy::{ServerKind, ServerQuestion};

/// Asks, and tells. `has_own_engine`: whoever starts that tells about it.
pub fn begin(question: ServerQuestion, backend: String, has_own_engine: bool) {
    let spawned = thread::Builder::new()
        .name("start check".into())
        .spawn(move || check(&question, &backend, has_own_engine));
    if let Err(error) = spawned {
        tracing::warn!(%error, "nobody looks whether the server is there");
    }
}

fn check(question: &ServerQuestion, backend: &str, has_own_engine: bool) {
    let server = question.server();
    if let Err(fault) = &server {
        tracing::warn!(
            "the server at {backend} does not answer: {fault}. Nobody can log in until it does"
        );
    }
    if has_own_engine {
        return;
    }
    match (question.engine(), server) {
        (None, _) => {}
        (Some(Err(fault)), _) => tracing::warn!(
            "the scratch engine that [scratch] names does not answer: {fault}. Statements that need it are refused until it does"
        ),
        (Some(Ok(engine)), Ok(server)) if !is_alike(&engine, &server) => tracing::warn!(
            "the scratch engine that [scratch] names is {}, and the server is {}: family and the first two numbers of the version must be the same, or \
             statements that need it are refused",
            engine.version,
            server.version
        ),
        (Some(Ok(_)), _) => {}
    }
}

fn is_alike(engine: &ServerKind, server: &ServerKind) -> bool {
    let first_two = |kind: &ServerKind| {
        let mut numbers = kind.version.split('.');
        [numbers.next(), numbers.next()].map(|n| n.map(str::to_owned))
    };
    engine.family == server.family && first_two(engine) == first_two(server)
}
