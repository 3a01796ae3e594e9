// Package etcd tests the etcd operator on a real control plane, and members as real processes.
package etcd
