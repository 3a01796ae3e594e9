package references

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
)

// content is the input of the checksum in the unique name of a ConfigMap or Secret.
type content struct {
	Type string            `json:"type,omitempty"`
	Data map[string][]byte `json:"data,omitempty"`
	// Text is the data of a ConfigMap. stringData of a Secret is merged into Data, as in the API server.
	Text map[string]string `json:"text,omitempty"`
}

// MakeUnique makes a ConfigMap or Secret immutable and sets the label of the garbage collector and the name "<name>-<8
// hexadecimal digits>". The digits are the start of a SHA-256 checksum of the data (and the type of a Secret). Equal
// data gives equal names, in any process, and different data gives different names. Call it once per object, after all
// data is set, and before InjectAnnotations is called for its users.
//
// The name has the form that gardener-resource-manager's helpers use, but other digits: how the helpers compute them is
// not part of their contract. When a client switches to this function, it creates its objects again under new names,
// and the old ones are collected.
func MakeUnique(obj runtime.Object) error {
	switch obj := obj.(type) {
	case *corev1.ConfigMap:
		if err := rename(obj, "ConfigMap", content{Data: obj.BinaryData, Text: obj.Data}); err != nil {
			return err
		}
		obj.Immutable = ptr.To(true)
	case *corev1.Secret:
		unique := content{Type: string(obj.Type), Data: obj.Data}
		if obj.Type == corev1.SecretTypeOpaque {
			unique.Type = "" // the API server defaults it to Opaque
		}
		if len(obj.StringData) > 0 {
			unique.Data = make(map[string][]byte, len(obj.Data)+len(obj.StringData))
			maps.Copy(unique.Data, obj.Data)
			for key, value := range obj.StringData {
				unique.Data[key] = []byte(value)
			}
		}
		if err := rename(obj, "Secret", unique); err != nil {
			return err
		}
		obj.Immutable = ptr.To(true)
	default:
		return fmt.Errorf("cannot make a %T unique: must be a ConfigMap or a Secret", obj)
	}
	return nil
}

func rename(obj metav1.Object, kind string, unique content) error {
	if obj.GetName() == "" {
		return fmt.Errorf("cannot make a %s without a name unique", kind)
	}
	encoded, err := json.Marshal(unique) // with sorted keys
	if err != nil {
		return fmt.Errorf("compute the checksum of %s %s/%s: %w", kind, obj.GetNamespace(), obj.GetName(), err)
	}
	hash := sha256.Sum256(encoded)
	name := obj.GetName() + "-" + hex.EncodeToString(hash[:])[:hashLength]
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return fmt.Errorf("cannot make %s %s/%s unique: %q is not a valid name: %s",
			kind, obj.GetNamespace(), obj.GetName(), name, strings.Join(problems, "; "))
	}
	labels := maps.Clone(obj.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	labels[LabelKeyGarbageCollectable] = LabelValueGarbageCollectable
	obj.SetLabels(labels)
	obj.SetName(name)
	return nil
}
