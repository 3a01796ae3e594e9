package latest

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// StatusPatch returns a strategic merge patch from an object to a changed copy, like client.StrategicMergeFrom. It contains the UID of the
// object, so that the API server refuses it once another object has the name.
func StatusPatch(from client.Object) client.Patch {
	return statusPatch{client.StrategicMergeFrom(from), from.GetUID()}
}

type statusPatch struct {
	client.Patch

	uid types.UID
}

// Data implements client.Patch.
func (p statusPatch) Data(changed client.Object) ([]byte, error) {
	data, err := p.Patch.Data(changed)
	if err != nil || p.uid == "" {
		return data, err
	}
	content := map[string]any{}
	if err := json.Unmarshal(data, &content); err != nil {
		return nil, fmt.Errorf("read the patch of %s: %w", client.ObjectKeyFromObject(changed), err)
	}
	metadata, ok := content["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
	}
	metadata["uid"], content["metadata"] = p.uid, metadata
	return json.Marshal(content)
}
