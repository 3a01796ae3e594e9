package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
)

// Choice selects ManagedResources, in addition to names.
type Choice struct {
	// AllNamespaces chooses from all namespaces.
	AllNamespaces bool
	// Selector chooses by labels.
	Selector string
	// Class chooses by the class of resource-managers; empty for all.
	Class string
}

// AddFlags adds the flags of a choice.
func (f *Choice) AddFlags(flags *pflag.FlagSet) {
	flags.BoolVarP(&f.AllNamespaces, "all-namespaces", "A", false, "Select ManagedResources of all namespaces")
	flags.StringVarP(&f.Selector, "selector", "l", "", "Select ManagedResources by labels, such as app=shop")
	flags.StringVar(&f.Class, "class", "", `Select ManagedResources of this class; "resources" is the default class`)
}

// IsEmpty reports whether no flag of the choice is set.
func (f *Choice) IsEmpty() bool { return !f.AllNamespaces && f.Selector == "" && f.Class == "" }

// Options returns the options of the list request. Includes filters its result.
func (f *Choice) Options(namespace string) ([]client.ListOption, error) {
	var options []client.ListOption
	if !f.AllNamespaces {
		options = append(options, client.InNamespace(namespace))
	}
	selector, err := labels.Parse(f.Selector)
	if err != nil {
		return nil, fmt.Errorf("--selector: %w", err)
	}
	return append(options, client.MatchingLabelsSelector{Selector: selector}), nil
}

// Includes reports whether a listed ManagedResource matches the choice.
func (f *Choice) Includes(mr *resourcesv1alpha1.ManagedResource) bool {
	return f.Class == "" || state.ClassOf(mr) == f.Class
}

// Choose returns the named ManagedResources. Without names, it returns those that match the choice, sorted by
// namespace and
// name.
func (c *Console) Choose(ctx context.Context, names []string, choice Choice) ([]resourcesv1alpha1.ManagedResource, error) {
	source, err := c.Source()
	if err != nil {
		return nil, err
	}
	namespace, err := c.Namespace()
	if err != nil {
		return nil, err
	}
	if len(names) > 0 {
		if !choice.IsEmpty() {
			return nil, errors.New("names cannot be combined with --all-namespaces, --selector or --class")
		}
		return c.chooseNamed(ctx, source, namespace, names)
	}
	progress := c.Begin("Reading ManagedResources")
	defer progress.End()
	options, err := choice.Options(namespace)
	if err != nil {
		return nil, err
	}
	all, err := source.ListManagedResources(ctx, func(count int) { progress.Say("Reading ManagedResources (%d)", count) }, options...)
	if err != nil {
		return nil, err
	}
	chosen := slices.DeleteFunc(all, func(mr resourcesv1alpha1.ManagedResource) bool { return !choice.Includes(&mr) })
	slices.SortFunc(chosen, func(a, b resourcesv1alpha1.ManagedResource) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return chosen, nil
}

func (c *Console) chooseNamed(ctx context.Context, source *Source, namespace string, names []string,
) ([]resourcesv1alpha1.ManagedResource, error) {
	chosen := make([]resourcesv1alpha1.ManagedResource, 0, len(names))
	var errs []error
	for _, name := range names {
		mr, err := c.get(ctx, source, ParseName(name, namespace))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		chosen = append(chosen, *mr)
	}
	return chosen, errors.Join(errs...)
}

// ChooseOne returns the ManagedResource with this name.
func (c *Console) ChooseOne(ctx context.Context, name string) (*resourcesv1alpha1.ManagedResource, error) {
	chosen, err := c.Choose(ctx, []string{name}, Choice{})
	if err != nil {
		return nil, err
	}
	return &chosen[0], nil
}

func (c *Console) get(ctx context.Context, source *Source, name types.NamespacedName) (*resourcesv1alpha1.ManagedResource, error) {
	mr, err := source.GetManagedResource(ctx, name)
	if apierrors.IsNotFound(err) && !HasNoKind(err) {
		return nil, c.explainUnknown(ctx, source, name)
	}
	return mr, err
}

// UnknownError reports that a ManagedResource does not exist.
type UnknownError struct {
	Name types.NamespacedName
	// hint suggests other names. It may be empty.
	hint string
}

// Error names the missing ManagedResource, and suggests others.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("ManagedResource %s not found%s", e.Name, e.hint)
}

// explainUnknown suggests similar names, or the namespace in which the name exists.
func (c *Console) explainUnknown(ctx context.Context, source *Source, name types.NamespacedName) error {
	everywhere, err := source.ListManagedResources(ctx, func(int) {})
	if err != nil { // listing all namespaces may be forbidden
		everywhere, err = source.ListManagedResources(ctx, func(int) {}, client.InNamespace(name.Namespace))
	}
	if err != nil {
		return &UnknownError{Name: name}
	}
	var here, elsewhere []string
	for i := range everywhere {
		mr := &everywhere[i]
		switch {
		case mr.Namespace == name.Namespace:
			here = append(here, mr.Name)
		case mr.Name == name.Name:
			elsewhere = append(elsewhere, mr.Namespace)
		}
	}
	suggestion := Suggest(name.Name, here)
	switch {
	case len(elsewhere) > 0:
		slices.Sort(elsewhere)
		namespaces := enumerate(elsewhere[:min(len(elsewhere), maxSuggestions)])
		return &UnknownError{name, fmt.Sprintf(", but there is one in namespace %s: use -n", namespaces)}
	case suggestion != "":
		return &UnknownError{name, suggestion}
	case len(here) == 0:
		return &UnknownError{name, fmt.Sprintf(", and namespace %s has no ManagedResources: list all with `kubectl mr get -A`", name.Namespace)}
	}
	return &UnknownError{name, fmt.Sprintf(": list the existing ones with `kubectl mr get -n %s`", name.Namespace)}
}

// Suggest returns the end of an error message about an unknown name, which suggests similar names. It is empty if
// there are none.
func Suggest(unknown string, names []string) string {
	suggestions := nearest(unknown, names)
	if len(suggestions) == 0 {
		return ""
	}
	return fmt.Sprintf(": did you mean %s?", enumerate(suggestions))
}

// enumerate returns "a", "a or b", "a, b or c".
func enumerate(items []string) string {
	if len(items) < 2 {
		return strings.Join(items, "")
	}
	return strings.Join(items[:len(items)-1], ", ") + " or " + items[len(items)-1]
}

// ParseName parses the name of a ManagedResource: NAME, NAMESPACE/NAME, or KIND/NAME as printed by "-o name".
func ParseName(text, namespace string) types.NamespacedName {
	prefix, name, found := strings.Cut(text, "/")
	switch kind, _, _ := strings.Cut(strings.ToLower(prefix), "."); {
	case !found:
		return types.NamespacedName{Namespace: namespace, Name: text}
	case kind == "mr" || kind == "managedresource" || kind == "managedresources":
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	return types.NamespacedName{Namespace: prefix, Name: name}
}
