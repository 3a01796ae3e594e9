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

// maxKubeconfig is how long a kubeconfig may be, in bytes; real ones have a few KiB, and a Secret at most 1 MiB.
const maxKubeconfig = 512 << 10

// kubeconfig is one of which the current context is complete. Fields that are not known here stay as they are.
type kubeconfig struct {
	tree map[string]any
	// user and cluster are those of the current context, parts of tree.
	user, cluster map[string]any
}

// readKubeconfig reads a kubeconfig in YAML or JSON. Nothing that it names is executed, opened or connected to. Errors contain names
// of its contexts, users and clusters, and nothing else of it.
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
		return nil, errors.New("a field of it has a value of another type than a kubeconfig has there: compare it with the output of kubectl config view")
	}
	if config.Kind != "" && config.Kind != "Config" || config.APIVersion != "" && config.APIVersion != "v1" {
		return nil, errors.New("it is no kubeconfig: kind and apiVersion have to be Config and v1")
	}
	var tree map[string]any
	if err := json.UnmarshalCaseSensitivePreserveInts(text, &tree); err != nil || tree == nil {
		return nil, errors.New("it is empty, or no object")
	}
	userName, clusterName, err := current(&config)
	if err != nil {
		return nil, err
	}
	result := &kubeconfig{tree: tree}
	result.user = partOf(tree, "users", userName, "user")
	result.cluster = partOf(tree, "clusters", clusterName, "cluster")
	if result.user == nil || result.cluster == nil {
		return nil, errors.New("the user or the cluster of the current context is no object")
	}
	return result, nil
}

// lineNumber finds in an error of a parser what may be told: its texts repeat parts of what was parsed.
var lineNumber = regexp.MustCompile(`line \d+`)

// toJSON refuses anchors and aliases, by which a short text becomes a huge one.
func toJSON(raw []byte) ([]byte, error) {
	var document yamlnodes.Node
	err := yamlnodes.Unmarshal(raw, &document)
	if err == nil && hasAlias(&document) {
		return nil, errors.New("it has anchors and aliases of YAML: write out what they stand for")
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

// current returns the names of user and cluster of the current context, if the user can have a token.
func current(config *clientcmdapiv1.Config) (userName, clusterName string, err error) {
	if config.CurrentContext == "" {
		return "", "", errors.New("it has no current-context: set it to the context whose user is to have the token")
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
		return "", "", fmt.Errorf("its user %q runs a program (exec), which a token requestor never does: remove exec, so that the token counts", userName)
	case user.AuthInfo.AuthProvider != nil:
		return "", "", fmt.Errorf("its user %q has an auth-provider: remove it, so that the token counts", userName)
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

// partOf returns the object under a field of the first item of a list that has a name. One that is null becomes an empty object.
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

// hasBundle tells whether the cluster of the current context has a CA bundle.
func (k *kubeconfig) hasBundle(bundle []byte) bool {
	text, _ := k.cluster["certificate-authority-data"].(string)
	data, err := base64.StdEncoding.DecodeString(text)
	return err == nil && bytes.Equal(data, bundle)
}

// with returns the kubeconfig as YAML with another token, and another CA bundle unless that is empty.
func (k *kubeconfig) with(token string, bundle []byte) ([]byte, error) {
	k.user["token"] = token
	if len(bundle) > 0 {
		k.cluster["certificate-authority-data"] = base64.StdEncoding.EncodeToString(bundle)
	}
	text, err := yaml.Marshal(k.tree)
	if err != nil {
		return nil, errors.New("it cannot be written as YAML") // the error may repeat parts of it
	}
	return text, nil
}
