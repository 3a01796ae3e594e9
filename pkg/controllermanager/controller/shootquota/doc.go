// Package shootquota deletes Shoots at the end of the lifetime that the Quotas of their credentials allow.
package shootquota
