package tokenrequestor

import (
	"bytes"
	"fmt"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// contents is the data of a Secret that holds a token.
type contents struct {
	data map[string][]byte
	// kubeconfig is parsed from the key of that name; nil if the key is missing, so that the token has its own key.
	kubeconfig *kubeconfig
}

// readContents reads the data of a Secret. It returns an error if the kubeconfig is not usable.
func readContents(data map[string][]byte) (contents, error) {
	raw := data[resourcesv1alpha1.DataKeyKubeconfig]
	if len(raw) == 0 {
		return contents{data: data}, nil
	}
	parsed, err := readKubeconfig(raw)
	if err != nil {
		return contents{}, fmt.Errorf("the kubeconfig under the key %s cannot be filled in: %w", resourcesv1alpha1.DataKeyKubeconfig, err)
	}
	return contents{data: data, kubeconfig: parsed}, nil
}

func (c contents) token() string {
	if c.kubeconfig != nil {
		return c.kubeconfig.token()
	}
	return string(c.data[resourcesv1alpha1.DataKeyToken])
}

// hasBundle reports whether the contents have the given CA bundle.
func (c contents) hasBundle(bundle []byte) bool {
	if c.kubeconfig != nil {
		return c.kubeconfig.hasBundle(bundle)
	}
	return bytes.Equal(c.data[resourcesv1alpha1.DataKeyBundle], bundle)
}

// changes are new values of keys in the data of a Secret; nil removes a key.
type changes map[string][]byte

// fill returns the changes that add a token and a CA bundle to a Secret, as in gardener-resource-manager: in its
// kubeconfig if it has one, otherwise under separate keys. An empty bundle is unknown or not requested.
func (c contents) fill(token string, bundle []byte) (changes, error) {
	if c.kubeconfig == nil {
		wanted := changes{resourcesv1alpha1.DataKeyToken: []byte(token), resourcesv1alpha1.DataKeyBundle: nil}
		if len(bundle) > 0 {
			wanted[resourcesv1alpha1.DataKeyBundle] = bundle
		}
		return wanted.from(c.data), nil
	}
	if c.kubeconfig.token() == token && (len(bundle) == 0 || c.kubeconfig.hasBundle(bundle)) {
		return nil, nil
	}
	text, err := c.kubeconfig.with(token, bundle)
	if err != nil {
		return nil, err
	}
	return changes{resourcesv1alpha1.DataKeyKubeconfig: text}, nil
}

// withdraw returns the changes that remove the token from a source Secret whose token is written to the target cluster.
// A kubeconfig stays without the token, because it may be a template that exists nowhere else. An unreadable kubeconfig
// cannot contain a token of this requestor.
func withdraw(data map[string][]byte) (changes, error) {
	result := changes{resourcesv1alpha1.DataKeyToken: nil, resourcesv1alpha1.DataKeyBundle: nil}.from(data)
	content, _ := readContents(data)
	if content.kubeconfig == nil || content.kubeconfig.token() == "" {
		return result, nil
	}
	text, err := content.kubeconfig.with("", nil)
	if err != nil {
		return nil, err
	}
	result[resourcesv1alpha1.DataKeyKubeconfig] = text
	return result, nil
}

// from returns the changes that differ from the data. It never returns nil.
func (c changes) from(data map[string][]byte) changes {
	result := changes{}
	for key, value := range c {
		present, found := data[key]
		if found != (value != nil) || !bytes.Equal(present, value) {
			result[key] = value
		}
	}
	return result
}
