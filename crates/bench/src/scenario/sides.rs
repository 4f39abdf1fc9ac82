//! What a load experiment has prepared: servers, and the ways of each variant to them.
//!
//! Variants with the same server settings share a server; others run side by side. Where the server
//! is to be far, there is a link before each server, and a variant has two ways: a near one past
//! the link and a far one over it, each with a relay and a database of its own.

use std::path::PathBuf;

use super::{
    Setting, companion::Companion, configuration, database, relay, replica::attach_replica,
};
use crate::{
    catalogue::{Extent, Path, Spec, VariantSpec},
    error::BenchError,
    link::Link,
    relay::{Relay, SCRATCH_USER},
    server::{Address, Configuration, Private, Server},
};

/// See the module.
pub struct Sides<'a> {
    setting: &'a Setting<'a>,
    spec: &'a Spec,
    /// Whether there are to be near ways, and far ones.
    near_and_far: [bool; 2],
    /// The servers.
    pub places: Vec<Place>,
    /// The variants.
    pub sides: Vec<Side>,
    /// The scratch engine of the relays that have one.
    engine: Option<Private>,
}

/// A server, with its replica if it has one.
pub struct Place {
    /// What it was started with.
    pub configuration: Configuration,
    /// What runs beside it.
    pub companion: Option<Companion>,
    // Ended first: it would look for its source.
    /// What reads its binary log.
    pub replica: Option<Private>,
    /// What lies before it on far ways.
    pub link: Option<Link>,
    /// The server.
    pub server: Server,
    /// The size of its buffer pool, if it was set.
    pub pool_mib: Option<u32>,
}

/// A variant that may be run.
pub struct Side {
    /// As the catalogue has it.
    pub spec: VariantSpec,
    /// Why it cannot be run, if so.
    pub unavailable: Option<String>,
    /// Its server.
    pub place: usize,
    /// Past the link; the only way where there is none.
    pub near: Option<Way>,
    /// Over the link.
    pub far: Option<Way>,
    /// Of the tables when they were filled.
    pub bytes_per_row: Option<f64>,
}

/// A way to a server.
pub struct Way {
    /// What stands between.
    pub relay: Option<Relay>,
    /// Where the load goes.
    pub address: Address,
    /// Its own.
    pub database: String,
}

impl Side {
    /// The ways that there are.
    pub fn ways(&self) -> impl Iterator<Item = &Way> {
        self.near.iter().chain(&self.far)
    }

    /// The near way or the far one.
    pub fn way(&self, far: bool) -> Option<&Way> {
        match far {
            false => self.near.as_ref(),
            true => self.far.as_ref(),
        }
    }
}

impl<'a> Sides<'a> {
    /// Starts servers, links and relays.
    pub fn prepare(
        setting: &'a Setting<'a>,
        spec: &'a Spec,
        extent: &Extent,
    ) -> Result<Self, BenchError> {
        let trips = &extent.round_trips_ms;
        let near = trips.is_empty() || trips.contains(&0.0);
        let mut sides = Self {
            setting,
            spec,
            near_and_far: [near, trips.iter().any(|ms| *ms > 0.0)],
            places: Vec::new(),
            sides: Vec::new(),
            engine: None,
        };
        for variant in &spec.variants {
            match (variant.path, setting.peers) {
                (Path::Peer, []) => sides.add(variant.clone(), None)?,
                (Path::Peer, peers) => {
                    for (name, dsn) in peers {
                        let peer = VariantSpec {
                            name: format!("peer-{name}"),
                            label: format!("{name} (--peer)"),
                            ..variant.clone()
                        };
                        sides.add(peer, Some(dsn.address().clone()))?;
                    }
                }
                _ => sides.add(variant.clone(), None)?,
            }
        }
        Ok(sides)
    }

    fn add(&mut self, variant: VariantSpec, peer: Option<Address>) -> Result<(), BenchError> {
        let [near, far] = self.near_and_far;
        let mut unavailable = self.setting.unavailable(&variant);
        if variant.path == Path::Peer && peer.is_none() {
            unavailable = Some("no other proxy was named with --peer NAME=DSN".into());
        } else if variant.path == Path::Peer && far {
            unavailable =
                Some("there is no link between somebody else's proxy and its server".into());
        }
        let mut side = Side {
            spec: variant,
            unavailable,
            place: 0,
            near: None,
            far: None,
            bytes_per_row: None,
        };
        if side.unavailable.is_none() {
            side.place = self.place(&side.spec)?;
            let database = database(&side.spec.name);
            let server = self.places[side.place].server.address().clone();
            let link = self.places[side.place].link.as_ref().map(Link::port);
            if near {
                side.near = Some(self.way(&side.spec, &server, database.clone(), peer)?);
            }
            if let (true, Some(port)) = (far, link) {
                let server = server.through(port);
                side.far = Some(self.way(&side.spec, &server, format!("{database}_far"), None)?);
            }
        }
        self.sides.push(side);
        Ok(())
    }

    fn way(
        &mut self,
        variant: &VariantSpec,
        server: &Address,
        database: String,
        peer: Option<Address>,
    ) -> Result<Way, BenchError> {
        let scratch = match variant.scratch {
            true => self.engine()?,
            false => None,
        };
        let scratch = scratch.as_deref();
        let (relay, address) = relay(self.setting, variant, server, &database, scratch)?;
        Ok(Way {
            relay,
            address: peer.unwrap_or(address),
            database,
        })
    }

    /// The socket of the scratch engine, a private server; none where no server program is
    /// installed.
    fn engine(&mut self) -> Result<Option<PathBuf>, BenchError> {
        let Setting {
            workshop, family, ..
        } = *self.setting;
        if workshop.program(family).is_none() {
            return Ok(None);
        }
        let engine = match self.engine.take() {
            Some(engine) => engine,
            None => {
                let account = format!("'{SCRATCH_USER}'@'localhost'");
                let setup = [
                    format!("CREATE USER {account}"),
                    format!("GRANT ALL PRIVILEGES ON *.* TO {account}"),
                ];
                let configuration = Configuration {
                    setup: setup.into(),
                    ..Configuration::default()
                };
                Private::start(workshop, family, &configuration)?
            }
        };
        let socket = engine.socket();
        self.engine = Some(engine);
        Ok(Some(socket))
    }

    /// The server for a variant; started if there is none with its settings.
    fn place(&mut self, variant: &VariantSpec) -> Result<usize, BenchError> {
        let configuration = configuration(self.spec, Some(variant), self.setting.family);
        let shared = self.places.iter().position(|place| {
            place.configuration == configuration && place.companion.is_none() && !self.spec.grows
        });
        if let (Some(place), None) = (shared, &variant.beside) {
            return Ok(place);
        }
        let server = self.setting.server(self.spec, Some(variant))?;
        let link = match self.near_and_far {
            [_, true] => {
                let address = server.address();
                Some(Link::to(&address.host, address.port)?)
            }
            _ => None,
        };
        let replica = match (&server, self.spec.replica) {
            (Server::Private(source), true) => Some(attach_replica(self.setting.workshop, source)?),
            _ => None,
        };
        let companion = match &variant.beside {
            None => None,
            Some(arguments) => Some(Companion::start(
                self.setting.workshop,
                server.address(),
                arguments,
            )?),
        };
        self.places.push(Place {
            configuration,
            companion,
            replica,
            link,
            server,
            pool_mib: None,
        });
        Ok(self.places.len() - 1)
    }
}

impl Drop for Sides<'_> {
    fn drop(&mut self) {
        // Relays before the servers behind them; and a given server keeps nothing of ours.
        for side in &mut self.sides {
            let ways = [side.near.take(), side.far.take()];
            let server = self.places.get(side.place).map(|place| &place.server);
            for Way {
                relay, database, ..
            } in ways.into_iter().flatten()
            {
                drop(relay);
                if let Some(server @ Server::Given(_)) = server
                    && let Ok(mut session) = server.session()
                {
                    let _ = session.attempt(&format!("DROP DATABASE IF EXISTS `{database}`"));
                }
            }
        }
    }
}
