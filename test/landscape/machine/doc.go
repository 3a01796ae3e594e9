// Package machine runs a machine in namespaces. Its processes have their own process IDs, mounts, network, host name, IPC
// and cgroups, and see the file system of the host read-only. Its process 1 starts and supervises services. When process 1
// ends, the kernel removes all processes, mounts and network devices of the machine. Only its cgroups remain, which
// [Remove] removes.
package machine
