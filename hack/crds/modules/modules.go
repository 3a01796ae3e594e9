//go:build never

// Package modules names the modules from which definitions are copied, so that "go mod tidy" keeps them.
package modules

import (
	_ "istio.io/api/label"
	_ "sigs.k8s.io/gateway-api/pkg/consts"
)
