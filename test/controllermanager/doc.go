// Package controllermanager tests the controller-manager with a garden that has a real API server.
package controllermanager
