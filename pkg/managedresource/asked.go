package managedresource

// resendFailed returns the inventory with what has to be sent again, though nothing may have changed: of the objects that the operation
// "reconcile" sends, those that failed.
func (p *pass) resendFailed(remaining inventory, changes []change) inventory {
	if !p.asked {
		return remaining
	}
	for _, change := range changes {
		if entry, recorded := remaining[change.Key()]; recorded && change.err != nil && change.manifest != nil {
			entry.Digest = ""
			remaining[change.Key()] = entry
		}
	}
	return remaining
}
