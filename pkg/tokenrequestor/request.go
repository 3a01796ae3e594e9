package tokenrequestor

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/types"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

const (
	// audience is the audience of all tokens, as in gardener-resource-manager.
	audience = "gardener"
	// defaultLifetime is the requested lifetime of a token if the Secret does not define one (the concept document,
	// "TokenRequestor").
	defaultLifetime = 12 * time.Hour
	// minLifetime and maxLifetime are the bounds of the TokenRequest API.
	minLifetime = 10 * time.Minute
	maxLifetime = (1 << 32) * time.Second
)

// tokenSpec holds the settings in the annotations of a source Secret.
type tokenSpec struct {
	// account is the ServiceAccount of the target cluster.
	account types.NamespacedName
	// labels are the desired labels of the ServiceAccount.
	labels map[string]string
	// lifetime is the requested lifetime of tokens, in whole seconds.
	lifetime time.Duration
	// bundle requests the CA bundle of the target cluster.
	bundle bool
	// target is the Secret of the target cluster for the token; empty to store it in the source Secret.
	target types.NamespacedName
}

// synced reports whether the token is written to a Secret of the target cluster.
func (w tokenSpec) synced() bool { return w.target.Name != "" }

// readTokenSpec reads the annotations. The error names all invalid ones.
func (o Options) readTokenSpec(annotations map[string]string) (tokenSpec, error) {
	labels, labelsErr := readLabels(annotations[resourcesv1alpha1.AnnotationServiceAccountLabels])
	lifetime, lifetimeErr := readLifetime(annotations[resourcesv1alpha1.AnnotationTokenExpirationDuration])
	w := tokenSpec{
		account: o.accountOf(annotations),
		labels:  labels, lifetime: lifetime,
		bundle: resourcesv1alpha1.Truthy(annotations[resourcesv1alpha1.AnnotationInjectCABundle]),
		target: targetOf(annotations),
	}
	errs := []error{
		validName(w.account.Name, resourcesv1alpha1.AnnotationServiceAccountName, "the ServiceAccount"),
		validNamespace(w.account.Namespace, resourcesv1alpha1.AnnotationServiceAccountNamespace, "the ServiceAccount"),
		labelsErr, lifetimeErr,
	}
	if w.synced() {
		errs = append(errs, validName(w.target.Name, resourcesv1alpha1.AnnotationTokenTargetName, "the Secret"),
			validNamespace(w.target.Namespace, resourcesv1alpha1.AnnotationTokenTargetNamespace, "the Secret"))
	}
	return w, errors.Join(errs...)
}

// accountOf returns the ServiceAccount that annotations name.
func (o Options) accountOf(annotations map[string]string) types.NamespacedName {
	return types.NamespacedName{
		Namespace: cmp.Or(o.AccountNamespace, annotations[resourcesv1alpha1.AnnotationServiceAccountNamespace]),
		Name:      annotations[resourcesv1alpha1.AnnotationServiceAccountName],
	}
}

// targetOf returns the Secret of the target cluster that annotations name. It is empty unless both name and namespace
// are set, as in gardener-resource-manager.
func targetOf(annotations map[string]string) types.NamespacedName {
	name := annotations[resourcesv1alpha1.AnnotationTokenTargetName]
	namespace := annotations[resourcesv1alpha1.AnnotationTokenTargetNamespace]
	if name == "" || namespace == "" {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func validName(name, annotation, what string) error {
	return valid(name, annotation, what, "the name", validation.NameIsDNSSubdomain(name, false))
}

func validNamespace(name, annotation, what string) error {
	return valid(name, annotation, what, "the namespace", validation.ValidateNamespaceName(name, false))
}

func valid(value, annotation, what, part string, objections []string) error {
	if value == "" {
		return fmt.Errorf("the annotation %s is missing: it sets %s of %s in the target cluster", annotation, part, what)
	}
	if len(objections) > 0 {
		return fmt.Errorf("the annotation %s is not %s of an object: %s", annotation, part, strings.Join(objections, "; "))
	}
	return nil
}

// readLabels parses a JSON object of strings; nil for an empty text.
func readLabels(text string) (map[string]string, error) {
	const annotation = resourcesv1alpha1.AnnotationServiceAccountLabels
	if text == "" {
		return nil, nil
	}
	var labels map[string]string
	if err := json.Unmarshal([]byte(text), &labels); err != nil {
		return nil, fmt.Errorf(`the annotation %s is not a JSON object of strings such as {"app":"web"}: %w`, annotation, err)
	}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if objections := utilvalidation.IsQualifiedName(key); len(objections) > 0 {
			errs = append(errs, fmt.Errorf("the annotation %s has %q, which is not a valid label key: %s",
				annotation, key, strings.Join(objections, "; ")))
		}
		if objections := utilvalidation.IsValidLabelValue(labels[key]); len(objections) > 0 {
			errs = append(errs, fmt.Errorf("the annotation %s has a value for %q that is not a valid label value: %s",
				annotation, key, strings.Join(objections, "; ")))
		}
	}
	return labels, errors.Join(errs...)
}

// readLifetime parses a Go duration; the default for an empty text.
func readLifetime(text string) (time.Duration, error) {
	const annotation = resourcesv1alpha1.AnnotationTokenExpirationDuration
	if text == "" {
		return defaultLifetime, nil
	}
	lifetime, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("the annotation %s is not a duration such as 6h: %w", annotation, err)
	}
	lifetime = lifetime.Truncate(time.Second)
	if lifetime < minLifetime || lifetime > maxLifetime {
		return 0, fmt.Errorf("the annotation %s is %s, but the API server issues tokens only for %s to %d hours",
			annotation, text, minLifetime, maxLifetime/time.Hour)
	}
	return lifetime, nil
}
