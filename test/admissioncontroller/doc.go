// Package admissioncontroller tests the program of the admission controller with a garden that has a real API server.
package admissioncontroller
