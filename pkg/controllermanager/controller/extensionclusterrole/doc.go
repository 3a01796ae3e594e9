// Package extensionclusterrole contains the garden's controller that binds ClusterRoles of extensions to their ServiceAccounts in the
// namespaces of Seeds. See docs/controller-manager.md.
package extensionclusterrole
