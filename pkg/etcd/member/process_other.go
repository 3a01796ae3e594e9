//go:build !linux

package member

import "syscall"

// endsWithParent is implemented only on Linux, the platform of members.
func endsWithParent() *syscall.SysProcAttr { return nil }
