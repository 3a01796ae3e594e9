package tokenrequestor

import (
	"bytes"
	"fmt"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// contents is the data of a Secret that carries a token.
type contents struct {
	data map[string][]byte
	// kubeconfig is what is under that key; nil if there is none, so that the token has a key of its own.
	kubeconfig *kubeconfig
}

// readContents reads the data of a Secret. The error tells that its kubeconfig cannot be filled in.
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

// hasBundle tells whether the CA bundle is beside the token.
func (c contents) hasBundle(bundle []byte) bool {
	if c.kubeconfig != nil {
		return c.kubeconfig.hasBundle(bundle)
	}
	return bytes.Equal(c.data[resourcesv1alpha1.DataKeyBundle], bundle)
}

// changes are new values of keys of a Secret's data; nil removes a key.
type changes map[string][]byte

// fill returns what has to change for a Secret to have a token and a CA bundle, as in gardener-resource-manager: in its kubeconfig
// if it has one, else under keys of their own. An empty bundle is not known or not wanted.
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

// withdraw returns what has to change for a source Secret whose token goes to the target cluster. Its kubeconfig stays, without the
// token: it may be a template that exists nowhere else. One that cannot be read has no token of ours.
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

// from leaves out what the data has already. It is never nil.
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
