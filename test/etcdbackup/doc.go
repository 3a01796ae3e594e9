// Package etcdbackup tests snapshots and restorations with real etcd processes and a store in a directory.
package etcdbackup
