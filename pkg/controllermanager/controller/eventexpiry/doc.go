// Package eventexpiry contains the garden's controller that deletes Events which are not about Shoots after a time, so that the API server
// can keep those about Shoots for longer.
package eventexpiry
