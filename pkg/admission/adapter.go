package admission

import (
	"context"
	"errors"
	"fmt"
	"io"

	"k8s.io/apiserver/pkg/admission"
)

// Register adds a plugin to a set of plugins of the API server's library.
func Register(plugins *admission.Plugins, plugin Plugin) {
	plugins.Register(plugin.Name, func(configuration io.Reader) (admission.Interface, error) {
		rules := plugin.Rules
		if plugin.Configure != nil {
			var err error
			if rules, err = plugin.Configure(configuration); err != nil {
				return nil, fmt.Errorf("configuration of the admission plugin %s: %w", plugin.Name, err)
			}
		}
		return &adapter{name: plugin.Name, rules: rules}, nil
	})
}

// Initializer gives the facts about the garden to all plugins of this package.
type Initializer struct{ Garden *Garden }

// Initialize implements admission.PluginInitializer.
func (i Initializer) Initialize(plugin admission.Interface) {
	if adapter, ok := plugin.(*adapter); ok {
		adapter.garden = i.Garden
	}
}

// adapter is a plugin as the API server's library knows it.
type adapter struct {
	name   string
	rules  []Rule
	garden *Garden
}

var (
	_ admission.MutationInterface       = &adapter{}
	_ admission.ValidationInterface     = &adapter{}
	_ admission.InitializationValidator = &adapter{}
)

// ValidateInitialization implements admission.InitializationValidator.
func (a *adapter) ValidateInitialization() error {
	if a.garden == nil {
		return errors.New("the facts about the garden are missing")
	}
	return nil
}

// Handles implements admission.Interface.
func (a *adapter) Handles(operation admission.Operation) bool {
	return operation != admission.Connect
}

// Admit implements admission.MutationInterface.
func (a *adapter) Admit(ctx context.Context, attributes admission.Attributes, _ admission.ObjectInterfaces) error {
	if attributes.GetOperation() == admission.Delete {
		return nil
	}
	request := newRequest(attributes)
	return request.refusal(a.name, Admit(ctx, a.rules, request, a.garden))
}

// Validate implements admission.ValidationInterface. The store calls it with each object that it is about to delete, also
// for the deletion of a collection. Before that, the API server calls it once without an object.
func (a *adapter) Validate(ctx context.Context, attributes admission.Attributes, _ admission.ObjectInterfaces) error {
	if attributes.GetOperation() == admission.Delete && attributes.GetOldObject() == nil {
		return nil
	}
	request := newRequest(attributes)
	return request.refusal(a.name, Validate(ctx, a.rules, request, a.garden))
}

func newRequest(attributes admission.Attributes) *Request {
	request := &Request{
		Operation: attributes.GetOperation(), Kind: attributes.GetKind().GroupKind(), Resource: attributes.GetResource().GroupResource(),
		Subresource: attributes.GetSubresource(), Namespace: attributes.GetNamespace(), Name: attributes.GetName(),
		Again: attributes.GetReinvocationContext().IsReinvoke(), User: attributes.GetUserInfo(), DryRun: attributes.IsDryRun(), Old: attributes.GetOldObject(),
	}
	if request.Operation != admission.Delete {
		request.Object = attributes.GetObject()
	}
	return request
}
