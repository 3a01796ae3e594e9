// Package admission is the frame of the admission plugins of the garden's API: rules with typed objects, the facts about
// the garden that they read, and one adapter to the API server's library. Each plugin is a package below this one.
package admission

import (
	"context"
	"fmt"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
)

// Operation is what a request does: admission.Create, Update or Delete of k8s.io/apiserver.
type Operation = admission.Operation

// Plugin is an admission plugin.
type Plugin struct {
	// Name is the name that the flags --enable-admission-plugins and --disable-admission-plugins use.
	Name string
	// Off is set for plugins that run only if --enable-admission-plugins names them.
	Off bool
	// Rules are the requests that the plugin handles. All rules that match a request apply, in their order.
	Rules []Rule
	// Configure returns the rules for a configuration of the plugin, which is nil if there is none. Plugins with this function
	// have no Rules.
	Configure func(configuration io.Reader) ([]Rule, error)
}

// Rule is a kind of request, and how a plugin handles it.
type Rule struct {
	// Resource is the resource of the request.
	Resource schema.GroupResource
	// Operations are the operations of the request.
	Operations []Operation
	// Subresources are the subresources of the request. The empty string stands for the object itself, and is the default.
	Subresources []string
	// Admit changes the object of a request. It does not run for deletions.
	Admit Handler
	// Validate refuses requests. For a deletion the old object is the one that is about to be deleted; there is no new one.
	Validate Handler
}

// Handler judges a request. Its errors refuse the request, as 403 unless they are API errors themselves (see Invalid and
// Unavailable).
type Handler func(context.Context, *Request, *Garden) error

// On returns a handler for objects of one type. The old object is nil for a creation, the new one for a deletion.
func On[T runtime.Object](handle func(ctx context.Context, request *Request, garden *Garden, object, old T) error) Handler {
	return func(ctx context.Context, request *Request, garden *Garden) error {
		object, err := as[T](request.Object)
		if err != nil {
			return err
		}
		old, err := as[T](request.Old)
		if err != nil {
			return err
		}
		return handle(ctx, request, garden, object, old)
	}
}

func as[T runtime.Object](object runtime.Object) (T, error) {
	var none T
	if object == nil {
		return none, nil
	}
	typed, ok := object.(T)
	if !ok {
		return none, fmt.Errorf("the object is a %T, not a %T", object, none)
	}
	return typed, nil
}

// Request is a request to the API server.
type Request struct {
	// Operation is what the request does.
	Operation Operation
	// Kind and Resource are those of the object. Subresource is empty for the object itself.
	Kind        schema.GroupKind
	Resource    schema.GroupResource
	Subresource string
	// Namespace and Name identify the object. The name is empty if the server generates it.
	Namespace, Name string
	// User is the authenticated user.
	User user.Info
	// Again is set if the API server runs Admit once more, because a webhook changed the object.
	Again bool
	// DryRun is set if the result is not stored.
	DryRun bool
	// Object is the object to store; nil for deletions. Old is the stored object; nil for creations.
	Object, Old runtime.Object
}

// Creates reports whether the request makes a new object.
func (r *Request) Creates() bool { return r.Operation == admission.Create }

// Updates reports whether the request changes an existing object.
func (r *Request) Updates() bool { return r.Operation == admission.Update }

func (r *Rule) matches(request *Request) bool {
	subresource := request.Subresource == ""
	if len(r.Subresources) > 0 {
		subresource = slices.Contains(r.Subresources, request.Subresource)
	}
	return subresource && r.Resource == request.Resource && slices.Contains(r.Operations, request.Operation)
}

// Admit lets the rules change the object of a request.
func Admit(ctx context.Context, rules []Rule, request *Request, garden *Garden) error {
	return run(ctx, rules, request, garden, func(rule *Rule) Handler { return rule.Admit })
}

// Validate lets the rules judge a request.
func Validate(ctx context.Context, rules []Rule, request *Request, garden *Garden) error {
	return run(ctx, rules, request, garden, func(rule *Rule) Handler { return rule.Validate })
}

func run(ctx context.Context, rules []Rule, request *Request, garden *Garden, handler func(*Rule) Handler) error {
	for i := range rules {
		rule := &rules[i]
		handle := handler(rule)
		if handle == nil || !rule.matches(request) {
			continue
		}
		if err := handle(ctx, request, garden); err != nil {
			return err
		}
	}
	return nil
}
