// Package names is the program that answers for the names of services on a machine: a small DNS server, which runs in a container of the
// network that the containers of a cluster share (docker.Names).
//
//	err := names.Run(ctx) // what the program nameserver does, and an operator's command "names"
//
// # Promises
//
//   - A name of a service has the addresses of those of its containers that work, in an order that is another one for each question, and
//     nobody keeps them (TTL 0). Without one that works it has none, which is no error.
//   - What is answered is in a file, which is read for each question: a new one holds from the next question on. One that can't be read
//     changes nothing.
//   - Everything else is asked of the name server of the container, as it came.
package names
