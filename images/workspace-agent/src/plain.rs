//! Plain HTTP: what a workspace talks to is on its loopback or in its cluster.

use std::time::Duration;

use reqwest::blocking::Client;

/// A client that needs nothing of its image: no certificates, no proxy.
pub(crate) fn client(limit: Option<Duration>) -> Result<Client, reqwest::Error> {
    Client::builder()
        .no_proxy()
        .tls_certs_only([])
        .timeout(limit)
        .build()
}
