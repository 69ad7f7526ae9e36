// Package scheduler picks machines for the containers of a service.
//
//	state, err := scheduler.Inspect(ctx, cli)
//	s, err := scheduler.New(state, spec)
//	for range spec.DesiredReplicas() {
//		m, err := s.Next()
//		if err != nil {
//			return err // says of each machine why not
//		}
//		fmt.Println(m.Name)
//	}
//
// A machine is eligible when it can be seen, takes new containers, the placement allows it, it has the volumes or may get them, no container of somebody
// else holds a fixed port, and, with the pull policy never, it has the image. Among the eligible ones the one with the fewest
// containers of the service is taken, then the one with the fewest containers, then the first by name.
//
// # Promises
//
//   - The same state gives the same machines. Nothing given is changed, and nothing is written.
//   - A machine that can't be seen is unknown, never empty. A volume that may be on one is not made anew elsewhere, and neither is one
//     that is on a machine where the service may not be.
//   - n containers on m machines are placed in O((n + m) log m).
//   - A [Report] says of every machine all that speaks against it.
package scheduler
