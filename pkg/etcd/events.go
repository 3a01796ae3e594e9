package etcd

// Reasons of Events. The reasons of False conditions are used for Events too.
//
// +events:on=Etcd
const (
	eventLossAccepted     = "DataLossAccepted"      // Warning: the loss of all data was accepted, and the backups are restored, or an empty cluster is formed
	eventDefragmentFailed = "DefragmentationFailed" // Warning: a member could not be defragmented
	eventDefragmented     = "Defragmented"          // Normal: all members are defragmented
)

// The actions of these Events.
const (
	actionReconcile  = "Reconcile"
	actionDefragment = "Defragment"
)
