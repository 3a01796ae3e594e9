package backup

import "time"

// action is what the leader does next.
type action string

// The actions.
const (
	// actionFull takes a full snapshot.
	actionFull action = "full"
	// actionSeal begins a new spool, and stores the previous one as a delta snapshot.
	actionSeal action = "seal"
	// actionUpload stores a sealed spool again after an error.
	actionUpload action = "upload"
	// actionConfirm checks that etcd has not changed since the last delta snapshot.
	actionConfirm action = "confirm"
	// actionDrop gives up changes that cannot be stored. A full snapshot replaces them.
	actionDrop action = "drop"
	// actionWatch continues the watch of changes.
	actionWatch action = "watch"
	// actionCollect deletes old snapshots.
	actionCollect action = "collect"
)

// state is what the leader knows.
type state struct {
	// gap is set if changes are missing after the chain in the store, or if there is no chain.
	gap bool
	// lastFull is when the last full snapshot was begun, and lastDelta when the end of the chain was last confirmed.
	lastFull, lastDelta time.Time
	// watching is set while changes are received.
	watching bool
	// size is the size of the changes that are not sealed, -1 if there is no spool. sealed is set if sealed changes are not stored yet.
	size   int64
	sealed bool
	// busy are the actions that are running, and notBefore is when failed ones may be repeated.
	busy      map[action]bool
	notBefore map[action]time.Time
	// collected is when garbage was collected.
	collected time.Time
}

// unsealed is how many times the limit the changes may take that arrive while the store does not take the previous ones.
const unsealed = 4

// decide returns the actions to start, and when time alone requires another one. It is pure.
func decide(s state, settings Settings, now time.Time) (actions []action, next time.Time) {
	due := func(what action, at time.Time) {
		if retry := s.notBefore[what]; retry.After(at) {
			at = retry
		}
		switch {
		case s.busy[what]:
		case at.After(now):
			next = earlier(next, at)
		default:
			actions = append(actions, what)
		}
	}
	full := settings.Full.Next(s.lastFull.UTC())
	if s.gap {
		full = now
	}
	due(actionFull, full)
	period := s.lastDelta.Add(settings.Period)
	storing := s.busy[actionUpload] || s.busy[actionConfirm]
	switch {
	case s.size < 0:
	case s.size >= unsealed*settings.Limit && s.sealed:
		actions = append(actions, actionDrop)
	case s.sealed && !storing:
		due(actionUpload, now)
	case s.sealed || storing:
	case s.size > 0 && s.size >= settings.Limit:
		due(actionSeal, now)
	case s.size > 0:
		due(actionSeal, period)
	default:
		due(actionConfirm, period)
	}
	if !s.watching && s.size >= 0 {
		due(actionWatch, now)
	}
	due(actionCollect, s.collected.Add(settings.Collection))
	return actions, next
}

// earlier returns the earlier of two times. The zero time means never. Members do not import controller-runtime, and with it the
// types of all APIs.
func earlier(a, b time.Time) time.Time {
	if b.IsZero() || !a.IsZero() && a.Before(b) {
		return a
	}
	return b
}
