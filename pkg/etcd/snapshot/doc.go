// Package snapshot stores backups of etcd, and restores etcd from them. A backup is a chain: a full snapshot of the database,
// and delta snapshots with the changes after it, without a gap between their revisions. docs/etcd-backup-format.md describes
// the objects in the store.
package snapshot
