package member

import "syscall"

// endsWithParent has a process end when this one is killed: two etcds with the same data must not run.
func endsWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
