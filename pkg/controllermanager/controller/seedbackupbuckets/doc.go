// Package seedbackupbuckets contains the garden's controller of the condition BackupBucketsReady of Seeds, which summarizes their
// BackupBuckets.
package seedbackupbuckets
