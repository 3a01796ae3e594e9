// Package values prepares the values of Helm charts of extensions: it fills in data of Secrets and ConfigMaps, merges values, and
// removes that data from messages.
package values

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/trellis-k8s/trellis/pkg/confidential"
)

// resourceTemplate matches references to data of resources in values.
var resourceTemplate = regexp.MustCompile(`\{\{-?\s*\.resources\.([a-zA-Z0-9]+)\.data\.([-._a-zA-Z0-9]+?)\s*-?\}\}`)

// Resources are the data to which values may refer.
type Resources struct {
	// Data by the names of the resources. Confidential contains the names of those that are Secrets.
	Data         map[string]map[string]string
	Confidential map[string]bool
	// Of names the object with the values and the resources, for messages, such as "ControllerDeployment local".
	Of string
}

// Decode decodes values in JSON, and fills in data of the resources. Without values, or with null, the result is empty.
func (r Resources) Decode(raw []byte) (map[string]any, error) {
	values := map[string]any{}
	if len(raw) == 0 {
		return values, nil
	}
	if err := json.Unmarshal(raw, &values); err != nil {
		return nil, fmt.Errorf("values of %s are not a JSON object", r.Of)
	}
	filled, err := r.fill(values)
	if err != nil {
		return nil, err
	}
	if values, ok := filled.(map[string]any); ok && values != nil {
		return values, nil
	}
	return map[string]any{}, nil
}

// fill replaces references to data of resources in all texts.
func (r Resources) fill(value any) (any, error) {
	switch value := value.(type) {
	case string:
		return r.fillText(value)
	case []any:
		for i := range value {
			filled, err := r.fill(value[i])
			if err != nil {
				return nil, err
			}
			value[i] = filled
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			filled, err := r.fill(value[key])
			if err != nil {
				return nil, err
			}
			value[key] = filled
		}
	}
	return value, nil
}

// fillText replaces references to data of resources in one text.
func (r Resources) fillText(text string) (string, error) {
	var missing error
	filled := resourceTemplate.ReplaceAllStringFunc(text, func(match string) string {
		parts := resourceTemplate.FindStringSubmatch(match)
		data, found := r.Data[parts[1]]
		content, has := data[parts[2]]
		switch {
		case !found:
			missing = fmt.Errorf("a value refers to %s, and %s is not in the resources of %s", match, parts[1], r.Of)
		case !has:
			missing = fmt.Errorf("a value refers to %s, and the resource %s of %s has no key %s", match, parts[1], r.Of, parts[2])
		}
		return content
	})
	return filled, missing
}

// Redact removes data of Secrets that are part of the values from a text, in any form in which errors repeat it.
func (r Resources) Redact(text string) string {
	const shortest = 4 // replacing shorter values would make the text unreadable and hide nothing
	var secret []string
	for name, data := range r.Data {
		if !r.Confidential[name] {
			continue
		}
		for _, content := range data {
			secret = append(secret, content)
		}
	}
	return confidential.Text(text, secret, shortest)
}

// Merge puts values over others. Objects are merged recursively. Other values are replaced.
func Merge(into, over map[string]any) {
	for key, value := range over {
		before, ok := into[key].(map[string]any)
		after, same := value.(map[string]any)
		if ok && same {
			Merge(before, after)
			continue
		}
		into[key] = value
	}
}
