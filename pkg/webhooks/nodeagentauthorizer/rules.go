package nodeagentauthorizer

import (
	"context"
	"errors"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// secretNamespace is the namespace of the Secrets and Leases that node agents use.
	secretNamespace = metav1.NamespaceSystem
	// leasePrefix is what the name of a node agent's Lease has before that of the Node.
	leasePrefix = "gardener-node-agent-"
	// nodeNameField is the field of Pods with the name of the Node.
	nodeNameField = "spec.nodeName"
)

// commonSecrets are those that all node agents read.
var commonSecrets = []string{
	"gardener-valitail", "gardener-opentelemetry-collector",
	"shoot-access-kube-controller-manager", "shoot-access-kube-scheduler", "shoot-access-cluster-admin",
}

// rule says what node agents may do with a resource.
type rule struct {
	verbs []string
	// subresources have the empty one, which is the object itself, first.
	subresources []string
	// apply decides about one of the verbs.
	apply func(ctx context.Context, q *question) error
}

// rules is all that node agents may do.
var rules = map[schema.GroupResource]rule{
	{Group: certificatesv1.GroupName, Resource: "certificatesigningrequests"}: {
		verbs: []string{"get", "create"}, subresources: []string{""}, apply: applyToRequests,
	},
	{Resource: "events"}:                            {verbs: []string{"create", "patch"}, subresources: []string{""}, apply: always},
	{Group: eventsv1.GroupName, Resource: "events"}: {verbs: []string{"create", "patch"}, subresources: []string{""}, apply: always},
	{Group: coordinationv1.GroupName, Resource: "leases"}: {
		verbs: []string{"get", "list", "watch", "create", "update"}, subresources: []string{""}, apply: applyToLeases,
	},
	{Resource: "nodes"}: {
		verbs: []string{"get", "list", "watch", "patch", "update"}, subresources: []string{"", "status"}, apply: applyToNodes,
	},
	{Resource: "pods"}: {
		verbs: []string{"get", "list", "watch", "delete"}, subresources: []string{""}, apply: applyToPods,
	},
	{Resource: "secrets"}: {
		verbs: []string{"get", "list", "watch"}, subresources: []string{""}, apply: applyToSecrets,
	},
}

func always(context.Context, *question) error { return nil }

// applyToRequests allows to make CertificateSigningRequests, and to read one's own.
func applyToRequests(ctx context.Context, q *question) error {
	if q.attributes.Verb == "create" {
		return nil
	}
	if q.attributes.Name != "" {
		own, err := q.isRequestOf(ctx, q.attributes.Name, q.user)
		if err != nil || own {
			return err
		}
	}
	return deny("node agents may only get CertificateSigningRequests that they created")
}

// applyToLeases allows the Lease of the own Node, and the one with the name of its configuration.
func applyToLeases(ctx context.Context, q *question) error {
	if q.attributes.Namespace != secretNamespace {
		return deny("node agents have access only to Leases in the namespace %s", secretNamespace)
	}
	node, err := q.ownNode(ctx)
	if err != nil {
		return err
	}
	// API servers do not send the name of an object that is created by POST.
	if q.attributes.Name == leasePrefix+node.name || q.attributes.Name == "" && q.attributes.Verb == "create" {
		return nil
	}
	if q.attributes.Name != "" && q.attributes.Name == node.secret {
		known, err := q.isConfiguration(ctx, node.secret)
		if err != nil || known {
			return err
		}
	}
	return deny("this node agent has access only to the Lease %s and to the Lease with the name of its configuration Secret", leasePrefix+node.name)
}

// isConfiguration reports whether a name from a Node is the name of a configuration. Node agents write the labels of their Node, and
// could otherwise give themselves access to any Lease.
func (q *question) isConfiguration(ctx context.Context, secret string) (bool, error) {
	if q.machines {
		machine, err := q.machine(ctx, q.machineName)
		if err != nil || machine != nil && machine.secret == secret {
			return err == nil, err
		}
	}
	return q.isPoolSecret(ctx, secret)
}

// applyToNodes allows to see all Nodes and to change the own one.
func applyToNodes(ctx context.Context, q *question) error {
	if q.attributes.Verb == "list" || q.attributes.Verb == "watch" {
		return nil
	}
	node, err := q.ownNode(ctx)
	if err == nil && q.attributes.Name != node.name {
		return deny("this node agent has access only to the Node %s", node.name)
	}
	return err
}

// applyToPods allows the Pods of the own Node, and to see all of them unless lists have to select. Without a Node, there are no Pods to
// see: a certificate without a Machine or Node gives no access.
func applyToPods(ctx context.Context, q *question) error {
	sees := q.attributes.Verb == "list" || q.attributes.Verb == "watch"
	node, err := q.ownNode(ctx)
	if err != nil || sees && !q.selectors {
		return err
	}
	if sees && selectsField(q.attributes.FieldSelector, nodeNameField, node.name) {
		return nil
	}
	// Without a namespace, the name would be that of Pods of all namespaces.
	if q.attributes.Name != "" && q.attributes.Namespace != "" {
		own, err := q.isPodOn(ctx, q.attributes.Namespace, q.attributes.Name, node.name)
		if err != nil || own {
			return err
		}
	}
	if sees {
		return deny("this node agent may only %s Pods with the field selector %s=%s", q.attributes.Verb, nodeNameField, node.name)
	}
	return deny("this node agent may only %s Pods on the Node %s", q.attributes.Verb, node.name)
}

// selectsField reports whether a selector leaves only objects with this value of a field. Requirements narrow each other, so that one
// of them is enough. What is not parsed (rawSelector) does not count, as the API asks of webhooks.
func selectsField(selector *authorizationv1.FieldSelectorAttributes, field, value string) bool {
	return selector != nil && slices.ContainsFunc(selector.Requirements, func(requirement metav1.FieldSelectorRequirement) bool {
		return requirement.Key == field && requirement.Operator == metav1.FieldSelectorOpIn && slices.Equal(requirement.Values, []string{value})
	})
}

// applyToSecrets allows the Secrets that all node agents read, those with the own configuration, and those that it refers to.
func applyToSecrets(ctx context.Context, q *question) error {
	if q.attributes.Namespace != secretNamespace {
		return deny("node agents have access only to Secrets in the namespace %s", secretNamespace)
	}
	name := q.attributes.Name
	if name == "" {
		return deny("node agents may only %s single Secrets: name one, for a list or watch by the field selector metadata.name", q.attributes.Verb)
	}
	common := slices.Contains(commonSecrets, name)
	if common && !q.machines {
		return nil
	}
	configurations, err := q.configurations(ctx)
	if err != nil || common || slices.Contains(configurations, name) {
		return err
	}
	var unreadable []error
	for _, configuration := range configurations {
		allowed, err := q.refersTo(ctx, configuration, name)
		if allowed {
			return nil
		}
		unreadable = append(unreadable, err)
	}
	if err := errors.Join(unreadable...); err != nil {
		return err
	}
	return deny("this node agent has no access to this Secret: it belongs neither to all node agents nor to the worker pool of the Node, " +
		"and no file of the operating system's configuration refers to it")
}

// configurations returns the names of the Secrets with the configuration of the operating system. A Machine names its own; there may
// be none. Without Machines it is the Node, or all of them while there is no Node: its node agent is about to make it one.
func (q *question) configurations(ctx context.Context) ([]string, error) {
	if q.machines {
		machine, err := q.machine(ctx, q.machineName)
		switch {
		case err != nil:
			return nil, err
		case machine == nil:
			return nil, deny("no machine %q found", q.machineName)
		case machine.secret == "":
			return nil, nil
		}
		return []string{machine.secret}, nil
	}
	node, err := q.node(ctx, q.machineName)
	switch {
	case err != nil:
		return nil, err
	case node == nil:
		return q.poolSecrets(ctx)
	case node.secret == "":
		return nil, nil
	}
	known, err := q.isPoolSecret(ctx, node.secret)
	if err != nil || !known {
		return nil, err
	}
	return []string{node.secret}, nil
}

// refersTo reports whether a file of a configuration, one that this Node gets, refers to a Secret. While there is no Node, files of all
// hosts count.
func (q *question) refersTo(ctx context.Context, configuration, secret string) (bool, error) {
	references, err := q.references(ctx, configuration)
	if err != nil {
		return false, err
	}
	hosts := map[string]bool{}
	for _, reference := range references {
		if reference.secret == secret {
			hosts[reference.host] = true
		}
	}
	if len(hosts) == 0 || hosts[""] { // the empty host matches all
		return hosts[""], nil
	}
	node, err := q.ownNode(ctx)
	if isDenial(err) { // the node agent reads its files to make a Node, which then has the label with the host
		return true, nil
	}
	return err == nil && hosts[node.host], err
}

// resourcesOf returns the names of the resources that have rules, in order.
func resourcesOf(rules map[schema.GroupResource]rule) []string {
	names := make([]string, 0, len(rules))
	for resource := range rules {
		names = append(names, resource.String())
	}
	slices.Sort(names)
	return names
}
