// Package apiserver tests the garden's API server behind a real kube-apiserver.
package apiserver
