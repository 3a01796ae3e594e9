package member

import "syscall"

// endsWithParent kills a process when its parent is killed: two etcd processes must not share data.
func endsWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
