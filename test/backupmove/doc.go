// Package backupmove tests the controllers of BackupBuckets and BackupEntries of two gardenlets while backups move between their Seeds, with real API
// servers of the garden and of both seeds. The gardenlets have the rights of their chart and of the garden's controller-manager.
package backupmove
