package why

import "encoding/json"

// MarshalJSON returns the output of "-o json".
func (e *Explanation) MarshalJSON() ([]byte, error) { return json.Marshal(e.findings) }
