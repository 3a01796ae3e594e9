// Package bastion deletes Bastions that have expired, and those whose Shoot is gone, is being deleted or has moved to another seed. A
// gardenlet then removes their hosts.
package bastion
