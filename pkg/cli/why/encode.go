package why

import "encoding/json"

// MarshalJSON returns what "-o json" writes.
func (e *Explanation) MarshalJSON() ([]byte, error) { return json.Marshal(e.findings) }
