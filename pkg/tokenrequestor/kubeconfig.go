package tokenrequestor

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"

	clientcmdapiv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	yamlnodes "go.yaml.in/yaml/v3"
)

// maxKubeconfig is the maximum size of a kubeconfig in bytes. Real ones have a few KiB, and a Secret has at most 1 MiB.
const maxKubeconfig = 512 << 10

// kubeconfig is a kubeconfig with a complete current context. Unknown fields are preserved.
type kubeconfig struct {
	tree map[string]any
	// user and cluster are those of the current context. They are parts of tree.
	user, cluster map[string]any
}

// readKubeconfig parses a kubeconfig in YAML or JSON. It does not use the programs, files and servers in it. Errors
// contain only the names of its contexts, users and clusters.
func readKubeconfig(raw []byte) (*kubeconfig, error) {
	if len(raw) > maxKubeconfig {
		return nil, fmt.Errorf("it has %d bytes, more than the %d allowed", len(raw), maxKubeconfig)
	}
	text, err := toJSON(raw)
	if err != nil {
		return nil, err
	}
	var config clientcmdapiv1.Config
	if json.UnmarshalCaseSensitivePreserveInts(text, &config) != nil {
		return nil, errors.New("a field has a value of the wrong type: compare the kubeconfig with the output of kubectl config view")
	}
	if config.Kind != "" && config.Kind != "Config" || config.APIVersion != "" && config.APIVersion != "v1" {
		return nil, errors.New("it is not a kubeconfig: kind must be Config and apiVersion must be v1")
	}
	var tree map[string]any
	if err := json.UnmarshalCaseSensitivePreserveInts(text, &tree); err != nil || tree == nil {
		return nil, errors.New("it is empty or not an object")
	}
	userName, clusterName, err := current(&config)
	if err != nil {
		return nil, err
	}
	result := &kubeconfig{tree: tree}
	result.user = partOf(tree, "users", userName, "user")
	result.cluster = partOf(tree, "clusters", clusterName, "cluster")
	if result.user == nil || result.cluster == nil {
		return nil, errors.New("the user or the cluster of the current context is not an object")
	}
	return result, nil
}

// lineNumber matches the only part of a parser error that is safe to report. The rest may contain parts of the input.
var lineNumber = regexp.MustCompile(`line \d+`)

// toJSON converts YAML to JSON. It rejects anchors and aliases, because they can expand a short text to a huge
// document.
func toJSON(raw []byte) ([]byte, error) {
	var document yamlnodes.Node
	err := yamlnodes.Unmarshal(raw, &document)
	if err == nil && hasAlias(&document) {
		return nil, errors.New("it uses YAML anchors and aliases: replace them with the values they refer to")
	}
	var text []byte
	if err == nil {
		text, err = yaml.YAMLToJSON(raw)
	}
	if err == nil {
		return text, nil
	}
	if line := lineNumber.FindString(err.Error()); line != "" {
		return nil, fmt.Errorf("it is neither YAML nor JSON: see %s", line)
	}
	return nil, errors.New("it is neither YAML nor JSON")
}

func hasAlias(node *yamlnodes.Node) bool {
	if node.Kind == yamlnodes.AliasNode {
		return true
	}
	for _, child := range node.Content {
		if hasAlias(child) {
			return true
		}
	}
	return false
}

// current returns the names of user and cluster of the current context. It returns an error if the user cannot have a
// token.
func current(config *clientcmdapiv1.Config) (userName, clusterName string, err error) {
	if config.CurrentContext == "" {
		return "", "", errors.New("it does not set current-context: set it to the context whose user should get the token")
	}
	context := find(config.Contexts, func(c *clientcmdapiv1.NamedContext) bool { return c.Name == config.CurrentContext })
	if context == nil {
		return "", "", fmt.Errorf("its current-context %q is not among its contexts", config.CurrentContext)
	}
	userName, clusterName = context.Context.AuthInfo, context.Context.Cluster
	user := find(config.AuthInfos, func(u *clientcmdapiv1.NamedAuthInfo) bool { return u.Name == userName })
	if user == nil {
		return "", "", fmt.Errorf("the user %q of its current-context is not among its users", userName)
	}
	if find(config.Clusters, func(c *clientcmdapiv1.NamedCluster) bool { return c.Name == clusterName }) == nil {
		return "", "", fmt.Errorf("the cluster %q of its current-context is not among its clusters", clusterName)
	}
	switch {
	case user.AuthInfo.Exec != nil:
		return "", "", fmt.Errorf(
			"its user %q has exec credentials, which the token requestor never runs: remove exec, so that the token is used", userName)
	case user.AuthInfo.AuthProvider != nil:
		return "", "", fmt.Errorf("its user %q has an auth-provider: remove it, so that the token is used", userName)
	}
	return userName, clusterName, nil
}

func find[T any](list []T, matches func(*T) bool) *T {
	for i := range list {
		if matches(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

// partOf returns the object in a field of the first list item with a name. A null field becomes an empty object.
func partOf(tree map[string]any, list, name, field string) map[string]any {
	items, _ := tree[list].([]any)
	for _, item := range items {
		item, ok := item.(map[string]any)
		if !ok {
			continue
		}
		if itemName, _ := item["name"].(string); itemName != name {
			continue
		}
		if item[field] == nil {
			item[field] = map[string]any{}
		}
		part, _ := item[field].(map[string]any)
		return part
	}
	return nil
}

// token returns the token of the user of the current context.
func (k *kubeconfig) token() string {
	token, _ := k.user["token"].(string)
	return token
}

// hasBundle reports whether the cluster of the current context has the given CA bundle.
func (k *kubeconfig) hasBundle(bundle []byte) bool {
	text, _ := k.cluster["certificate-authority-data"].(string)
	data, err := base64.StdEncoding.DecodeString(text)
	return err == nil && bytes.Equal(data, bundle)
}

// with returns the kubeconfig as YAML with another token and, unless the bundle is empty, another CA bundle.
func (k *kubeconfig) with(token string, bundle []byte) ([]byte, error) {
	k.user["token"] = token
	if len(bundle) > 0 {
		k.cluster["certificate-authority-data"] = base64.StdEncoding.EncodeToString(bundle)
	}
	text, err := yaml.Marshal(k.tree)
	if err != nil {
		return nil, errors.New("it cannot be written as YAML") // the error may contain parts of it
	}
	return text, nil
}
