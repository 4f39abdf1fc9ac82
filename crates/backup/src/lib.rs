//! Reserved: sealed streams, sources, binlog archive. No code yet.
