//go:build !linux

package member

import "syscall"

// endsWithParent is for Linux, on which members run.
func endsWithParent() *syscall.SysProcAttr { return nil }
