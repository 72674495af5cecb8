"""What this machine can do with specwire, and what to do where it cannot: findings for a person, or for a program.

    from specwire.runtime.doctor.examination import examine

Each module looks at one thing and returns findings; nothing here changes the machine, and nothing that is missing
or broken ends the examination.
"""
